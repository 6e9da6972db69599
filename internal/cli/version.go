package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the release build: -ldflags "-X .../internal/cli.version=v1.2.3".
var version string

// VersionInfo is what this binary was built from.
type VersionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // built from a tree with uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Version reads what the linker and the Go tool recorded.
func Version() VersionInfo {
	v := VersionInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String is the one line for a person.
func (v VersionInfo) String() string {
	name := v.Version
	if name == "" || name == "(devel)" {
		name = "development"
	}
	commit := v.Commit
	if len(commit) > 12 {
		commit = commit[:12]
	}
	if commit == "" {
		commit = "unknown commit"
	}
	if v.Modified {
		commit += ", modified"
	}
	return fmt.Sprintf("daybook %s (%s, %s, %s)", name, commit, v.Go, v.Platform)
}
