package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Source says where a value came from, in words a person can follow: "default",
// "flag --sync", "env DAYBOOK_SYNC", "file daybook.yaml:3".
type Source string

// Loaded is a checked configuration and its origins.
type Loaded struct {
	*Config
	Sources map[string]Source // by option name
	// Notes are hints that are no errors, such as a variable that looks misspelt.
	Notes []string
}

// Flags holds the command line's share.
type Flags struct {
	file string
	set  map[string]string
}

// BindFlags adds every option, and --config, to fs. A bad value is refused while
// fs parses.
func BindFlags(fs *pflag.FlagSet) *Flags {
	f := &Flags{set: map[string]string{}}
	scratch := Default()
	for _, o := range options {
		v := fs.VarPF(&flagValue{o: o, into: f, scratch: scratch}, o.Name, "", o.Doc)
		if o.Arg == "BOOL" {
			v.NoOptDefVal = "true"
		}
	}
	fs.StringVar(&f.file, "config", "", "YAML `FILE` with the same options, keyed by flag name (env DAYBOOK_CONFIG)")
	return f
}

// flagValue is a pflag.Value that checks and remembers.
type flagValue struct {
	o       Option
	into    *Flags
	scratch *Config
}

func (v *flagValue) Set(s string) error {
	if err := v.o.set(v.scratch, s); err != nil {
		return err
	}
	v.into.set[v.o.Name] = s
	return nil
}

func (v *flagValue) String() string {
	if v.into == nil { // pflag asks a zero value
		return ""
	}
	return v.o.Default
}

func (v *flagValue) Type() string {
	if v.o.Arg == "BOOL" {
		return "bool"
	}
	return v.o.Arg
}

// Load puts the sources together: flag before environment before file before
// default. environ is in the form of os.Environ. The error names each fault.
func Load(f *Flags, environ []string) (*Loaded, error) {
	l := &Loaded{Config: Default(), Sources: map[string]Source{}}
	for _, o := range options {
		l.Sources[o.Name] = "default"
	}
	env, notes := environment(environ)
	l.Notes = notes
	file := f.file
	if file == "" {
		file = env["DAYBOOK_CONFIG"]
	}
	var faults []error
	if file != "" {
		faults = append(faults, l.loadFile(file))
	}
	for _, o := range options {
		if s, ok := env[o.Env]; ok {
			if err := o.set(l.Config, s); err != nil {
				faults = append(faults, fmt.Errorf("environment: %s: %w", o.Env, err))
			}
			l.Sources[o.Name] = Source("env " + o.Env)
		}
		if s, ok := f.set[o.Name]; ok {
			if err := o.set(l.Config, s); err != nil {
				faults = append(faults, fmt.Errorf("--%s: %w", o.Name, err))
			}
			l.Sources[o.Name] = Source("flag --" + o.Name)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return l, l.check()
}

func (l *Loaded) loadFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("config file: %w", err)
	}
	return parseFile(path, data, func(o Option, value string, line int) error {
		l.Sources[o.Name] = Source(fmt.Sprintf("file %s:%d", path, line))
		return o.set(l.Config, value)
	})
}

// check looks at options together.
func (l *Loaded) check() error {
	if l.KafkaAddr == l.HTTPAddr && l.KafkaAddr != Off && !strings.HasSuffix(l.KafkaAddr, ":0") {
		return fmt.Errorf("--kafka and --http are both %s; give one of them another port", l.KafkaAddr)
	}
	return nil
}

// environment picks Daybook's variables. Unknown ones are no errors (Kubernetes
// sets DAYBOOK_PORT and the like for a service named daybook), but one that looks
// misspelt is worth a note.
func environment(environ []string) (vars map[string]string, notes []string) {
	vars = map[string]string{}
	known := []string{"DAYBOOK_CONFIG"}
	for _, o := range options {
		known = append(known, o.Env)
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "DAYBOOK_") {
			continue
		}
		vars[name] = value
		if guess := guessEnv(name, known); guess != "" {
			notes = append(notes, fmt.Sprintf("environment: %s is not an option; did you mean %s?", name, guess))
		}
	}
	return vars, notes
}

func guessEnv(name string, known []string) string {
	for _, k := range known {
		if k == name {
			return ""
		}
		if k == name+"_ADDR" {
			return k
		}
	}
	return nearest(name, known)
}

// Print writes the effective values as a config file, each with its origin.
func (l *Loaded) Print(w io.Writer) error {
	var b strings.Builder
	for _, o := range options {
		line := o.Name + ": " + yamlScalar(o.get(l.Config))
		fmt.Fprintf(&b, "%-34s # %s\n", line, l.Sources[o.Name])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
