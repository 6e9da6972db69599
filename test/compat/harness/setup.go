//go:build unix

package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Part is one thing that set-up installs.
type Part string

// The parts. A suite names those it needs.
const (
	PartKcat    Part = "kcat"    // Debian
	PartPython  Part = "python"  // a venv with confluent-kafka, aiokafka, pyarrow
	PartNode    Part = "node"    // kafkajs and its codecs
	PartJava    Part = "java"    // Kafka's jars and the compiled Java programs
	PartConnect Part = "connect" // Kafka Connect with its file connectors
	PartFranz   Part = "franz"   // the compiled franz-go program
	PartFlights Part = "flights" // one million flight events as key, tab, value
	PartKgo     Part = "kgo"     // a scratch copy of the franz-go module
	PartKafkaGo Part = "kafkago" // a scratch copy of the kafka-go module
)

// Install makes p ready, or says what is missing.
func (e *Env) Install(ctx context.Context, p Part) error {
	steps := map[Part]func(context.Context) error{
		PartKcat: e.installKcat, PartPython: e.installPython, PartNode: e.installNode,
		PartJava: e.installJava, PartConnect: e.installConnect, PartFranz: e.buildFranz, PartFlights: e.installFlights,
		PartKgo:     func(ctx context.Context) error { return e.copyModule(ctx, FranzGoModule, FranzGoVersion) },
		PartKafkaGo: func(ctx context.Context) error { return e.copyModule(ctx, KafkaGoModule, KafkaGoVersion) },
	}
	if err := steps[p](ctx); err != nil {
		return fmt.Errorf("set-up of %s: %w", p, err)
	}
	return nil
}

// need finds a program, installing its Debian packages when it is missing and we are root.
func (e *Env) need(ctx context.Context, program string, packages ...string) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%s is not installed: apt-get install %s", program, strings.Join(packages, " "))
	}
	log := e.setupLog("apt")
	if err := Run(ctx, Command{Args: []string{"apt-get", "update", "-qq"}, Log: log}); err != nil {
		return err
	}
	args := append([]string{"apt-get", "install", "-y", "-qq", "--no-install-recommends"}, packages...)
	if err := Run(ctx, Command{Args: args, Log: log, Env: []string{"DEBIAN_FRONTEND=noninteractive"}}); err != nil {
		return err
	}
	_, err := exec.LookPath(program)
	return err
}

func (e *Env) setupLog(name string) string { return filepath.Join(e.Run, "logs", "setup", name+".log") }

func (e *Env) installKcat(ctx context.Context) error { return e.need(ctx, "kcat", "kcat") }

// Python is the venv's interpreter.
func (e *Env) Python() string { return filepath.Join(e.Cache, "python", "bin", "python") }

func (e *Env) installPython(ctx context.Context) error {
	if err := e.need(ctx, "python3", "python3", "python3-venv"); err != nil {
		return err
	}
	requirements := filepath.Join(e.Client("python"), "requirements.txt")
	dir := filepath.Join(e.Cache, "python")
	return e.once(dir, func() error {
		log := e.setupLog("python")
		if err := Run(ctx, Command{Args: []string{"python3", "-m", "venv", dir}, Log: log}); err != nil {
			return err
		}
		return Run(ctx, Command{Log: log, Args: []string{
			e.Python(), "-m", "pip", "install", "--quiet",
			"--disable-pip-version-check", "--only-binary=:all:", "-r", requirements,
		}})
	}, requirements)
}

// NodeModules is the folder that NODE_PATH must name.
func (e *Env) NodeModules() string { return filepath.Join(e.Cache, "node", "node_modules") }

func (e *Env) installNode(ctx context.Context) error {
	if err := e.need(ctx, "npm", "nodejs", "npm"); err != nil {
		return err
	}
	dir, manifest := filepath.Join(e.Cache, "node"), filepath.Join(e.Client("node"), "package.json")
	lock := filepath.Join(e.Client("node"), "package-lock.json")
	return e.once(dir, func() error {
		for _, f := range []string{manifest, lock} {
			if err := copyFile(f, filepath.Join(dir, filepath.Base(f))); err != nil {
				return err
			}
		}
		return Run(ctx, Command{
			Dir: dir, Log: e.setupLog("node"),
			Args: []string{"npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"},
		})
	}, manifest, lock)
}

// ClassPath of Kafka's jars and our Java programs.
func (e *Env) ClassPath() string {
	return filepath.Join(e.Cache, "java", "lib", "*") + ":" + filepath.Join(e.Cache, "java", "classes")
}

// ConnectClassPath of Kafka Connect, which is of another version than the rest.
func (e *Env) ConnectClassPath() string { return filepath.Join(e.Cache, "java", "connect", "*") }

func (e *Env) installConnect(ctx context.Context) error {
	return e.installJars(ctx, filepath.Join(e.Client("java"), "connect", "pom.xml"), filepath.Join(e.Cache, "java", "connect"))
}

// installJars puts what a pom names, and what that needs, into lib.
func (e *Env) installJars(ctx context.Context, pom, lib string) error {
	if err := e.need(ctx, "javac", "openjdk-17-jdk-headless"); err != nil {
		return err
	}
	if err := e.need(ctx, "mvn", "maven"); err != nil {
		return err
	}
	return e.once(lib, func() error {
		return Run(ctx, Command{Log: e.setupLog("java"), Args: []string{
			"mvn", "-q", "-B", "-f", pom,
			"dependency:copy-dependencies", "-DoutputDirectory=" + lib,
		}})
	}, pom)
}

func (e *Env) installJava(ctx context.Context) error {
	pom := filepath.Join(e.Client("java"), "pom.xml")
	lib := filepath.Join(e.Cache, "java", "lib")
	if err := e.installJars(ctx, pom, lib); err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(e.Client("java"), "*.java"))
	if err != nil {
		return err
	}
	classes := filepath.Join(e.Cache, "java", "classes")
	return e.once(classes, func() error {
		args := append([]string{"javac", "-nowarn", "-cp", filepath.Join(lib, "*"), "-d", classes}, sources...)
		return Run(ctx, Command{Log: e.setupLog("java"), Args: args})
	}, append(sources, pom)...)
}

// Franz is the compiled franz-go client program.
func (e *Env) Franz() string { return filepath.Join(e.Cache, "bin", "franz") }

func (e *Env) buildFranz(ctx context.Context) error {
	return Run(ctx, Command{
		Dir: e.Tree, Log: e.setupLog("franz"),
		Args: []string{"go", "build", "-o", e.Franz(), "./test/compat/clients/franz"},
	})
}

// Flights is the data set: lines of key, tab, value.
func (e *Env) Flights() string { return filepath.Join(e.Cache, "flights", "flights.tsv") }

func (e *Env) installFlights(ctx context.Context) error {
	if err := e.installPython(ctx); err != nil {
		return err
	}
	if err := e.need(ctx, "npm", "nodejs", "npm"); err != nil {
		return err
	}
	dir, script := filepath.Join(e.Cache, "flights"), filepath.Join(e.Client("python"), "flights_to_tsv.py")
	return e.once(dir, func() error {
		log := e.setupLog("flights")
		if err := Run(ctx, Command{Dir: dir, Log: log, Args: []string{"npm", "pack", "--silent", VegaDatasets}}); err != nil {
			return err
		}
		archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
		if err != nil || len(archives) != 1 {
			return fmt.Errorf("npm pack left %v: %w", archives, err)
		}
		if err := Run(ctx, Command{Dir: dir, Log: log, Args: []string{"tar", "xzf", archives[0], FlightsMember}}); err != nil {
			return err
		}
		parquet := filepath.Join(dir, FlightsMember)
		if err := checkSum(parquet, FlightsSHA256); err != nil {
			return err
		}
		if err := Run(ctx, Command{Log: log, Args: []string{e.Python(), script, parquet, e.Flights()}}); err != nil {
			return err
		}
		return checkSum(e.Flights(), FlightsTSVSHA256)
	}, script)
}

// ModuleCopy is the scratch copy of a Go module that its tests run in.
func (e *Env) ModuleCopy(module string) string {
	return filepath.Join(e.Cache, "modules", filepath.Base(module))
}

// copyModule copies a module out of the module cache, whose files cannot be written and
// whose tests do not run there.
func (e *Env) copyModule(ctx context.Context, module, version string) error {
	scratch := e.ModuleCopy(module)
	return e.onceKey(scratch, module+"@"+version, func() error {
		empty, err := os.MkdirTemp("", "compat")
		if err != nil {
			return err
		}
		defer os.RemoveAll(empty)
		out, err := Output(ctx, empty, "go", "mod", "download", "-json", module+"@"+version)
		if err != nil {
			return err
		}
		_, rest, ok := strings.Cut(out, `"Dir": "`)
		dir, _, ok2 := strings.Cut(rest, `"`)
		if !ok || !ok2 {
			return fmt.Errorf("go mod download named no folder: %s", out)
		}
		return os.CopyFS(scratch, writableFS(dir))
	})
}

// once runs install into an empty dir unless a stamp says that it ran for these inputs.
func (e *Env) once(dir string, install func() error, inputs ...string) error {
	sum := sha256.New()
	for _, in := range inputs {
		data, err := os.ReadFile(in)
		if err != nil {
			return err
		}
		sum.Write(data)
	}
	return e.onceKey(dir, hex.EncodeToString(sum.Sum(nil))+VegaDatasets, install)
}

func (e *Env) onceKey(dir, key string, install func() error) error {
	stamp := dir + ".stamp"
	if have, err := os.ReadFile(stamp); err == nil && string(have) == key {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := install(); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(key), 0o644)
}

func checkSum(path, want string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != want {
		return fmt.Errorf("%s has SHA-256 %s, expected %s: the package's content changed", path, got, want)
	}
	return nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
