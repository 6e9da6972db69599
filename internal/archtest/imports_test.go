package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// layer says what the packages under a folder may import of Daybook's own. The
// first row that matches a package counts, so the narrow rows come first.
type layer struct {
	dir    string
	may    []string
	reason string
}

// leaves stand below everyone and know nothing but the shared nouns.
var leaves = []string{
	"internal/model", "internal/records", "internal/clock", "internal/obs", "internal/config",
	"internal/auth", "internal/quota",
}

func leavesAnd(more ...string) []string { return append(slices.Clone(leaves), more...) }

var layers = []layer{
	{"internal/model", nil, "the shared nouns import nothing of ours, so that everyone may import them"},
	{"internal/records", []string{"internal/model"}, "codecs are leaves"},
	{"internal/clock", []string{"internal/model"}, "the clock is a leaf"},
	{"internal/obs", []string{"internal/model", "internal/obs"}, "instruments are leaves: any layer may hold one"},
	{"internal/config", []string{"internal/model"}, "options are a leaf; nothing but app turns them into parts"},
	{"internal/auth", []string{"internal/model", "internal/clock"}, "a leaf"},
	{"internal/quota", []string{"internal/model", "internal/clock"}, "a leaf"},

	{"internal/storage/vfs", leavesAnd(), "the file contract knows files, not journals"},
	{"internal/storage/object", leavesAnd(), "the blob contract knows blobs, not journals"},
	{"internal/storage/format", leavesAnd("internal/storage"), "byte layouts know what is laid out"},
	{"internal/storage", leavesAnd("internal/storage"), "storage knows nothing of topics, groups or protocols"},

	{"internal/core", leavesAnd("internal/core", "internal/storage"), "core knows no protocol and no process"},
	{"internal/cluster", leavesAnd("internal/core"), "placement stands beside the fronts, on core"},
	{"internal/front/kafka", leavesAnd("internal/front/kafka", "internal/core", "internal/cluster"), "fronts call core: never storage, never each other"},
	{"internal/front/amqp", leavesAnd("internal/front/amqp", "internal/core", "internal/cluster"), "fronts call core: never storage, never each other"},
	{"internal/front/web", leavesAnd("internal/front/web", "internal/core", "internal/cluster"), "fronts call core: never storage, never each other"},

	{"internal/app", []string{"internal"}, "the composition root is the only package that may import all"},
	{"internal/cli", leavesAnd("internal/cli"), "the tools speak the public protocol, so that they work against any broker"},
	{"internal/bench", leavesAnd("internal/bench", "internal/cli", "internal/storage/vfs"), "the bench speaks the public protocol; vfs measures the disk itself"},
	{"internal/doctor", leavesAnd("internal/doctor", "internal/cli", "internal/storage"), "the doctor looks at a broker and at its directory from outside"},
	{"internal/archtest", nil, "rules look at source text only"},
	{"cmd/daybook", []string{"internal/app", "internal/cli", "internal/bench", "internal/doctor", "internal/config", "internal/obs", "internal/model", "internal/storage"}, "commands hold flags and arguments, no logic"},
	{"daybooktest", leavesAnd("internal/app", "internal/storage/vfs"), "the public test broker is the real one, started in process"},
	{"test", []string{"internal", "daybooktest", "test", "cmd"}, "tests across packages may look anywhere"},
	{"examples", []string{"examples", "daybooktest", "inbox", "outbox", "retry", "partitioner"}, "examples use what applications use"},
	{"inbox", []string{"inbox"}, "public helpers must not drag the broker into an application"},
	{"outbox", []string{"outbox"}, "public helpers must not drag the broker into an application"},
	{"retry", []string{"retry"}, "public helpers must not drag the broker into an application"},
	{"partitioner", []string{"partitioner"}, "public helpers must not drag the broker into an application"},
}

func layerOf(dir string) (layer, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return under(dir, l.dir) })
	if i < 0 {
		return layer{}, false
	}
	return layers[i], true
}

func TestImportsFollowTheLayers(t *testing.T) {
	for _, f := range sources(t) {
		l, ok := layerOf(f.dir)
		if !ok {
			t.Errorf("%s: no layer covers folder %s; add a row to layers in internal/archtest", f.path, f.dir)
			continue
		}
		if f.test { // tests may build what is below or beside them; see the fixture rule
			continue
		}
		for _, path := range f.imports() {
			own, ours := strings.CutPrefix(path, module+"/")
			if ours && own != f.dir && !slices.ContainsFunc(l.may, func(m string) bool { return under(own, m) }) {
				t.Errorf("%s imports %s: not allowed in %s, because %s", f.path, own, l.dir, l.reason)
			}
		}
	}
}

// banned are imports from outside the module that a folder must not have.
var banned = []struct {
	dir, path, reason string
}{
	{"internal/core", "net", "core is called by fronts and does not know the network"},
	{"internal/core", "net/http", "core is called by fronts and does not know the network"},
	{"internal/core", "os", "core keeps its state in partitions, not in files"},
	{"internal/storage", "net/http", "storage does not know the network"},
	{"internal/storage", "github.com/twmb/franz-go/pkg/kmsg", "storage keeps batches, not requests"},
	{"internal/model", "github.com/twmb/franz-go/pkg/kmsg", "the shared nouns belong to no protocol"},
	{"internal/front", "github.com/twmb/franz-go/pkg/kgo", "a front is a server; the client library is for tools and tests"},
	{"internal/core", "github.com/prometheus/client_golang/prometheus", "core counts with obs instruments; app exports them"},
	{"internal/storage", "github.com/prometheus/client_golang/prometheus", "storage counts with obs instruments; app exports them"},
}

func TestBannedImports(t *testing.T) {
	for _, f := range sources(t) {
		for _, b := range banned {
			if !f.test && under(f.dir, b.dir) && slices.Contains(f.imports(), b.path) {
				t.Errorf("%s imports %s: %s", f.path, b.path, b.reason)
			}
		}
	}
}

// selectors calls visit for each use pkg.Name of an imported package.
func selectors(in ast.Node, visit func(pkg, name string, n ast.Node)) {
	ast.Inspect(in, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok {
				visit(id.Name, s.Sel.Name, n)
			}
		}
		return true
	})
}

// clockReaders are the functions of package time that look at the world.
var clockReaders = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// clockOwners are the files of core that hold a loop around machines: they read the
// clock, if nobody gave them one, and wake by timers, so that the machines need not.
var clockOwners = []string{
	"internal/core/groups/groups.go",
	"internal/core/groups/short.go",
	"internal/core/groups/timers.go",
	"internal/core/ledgers/timers.go",
	"internal/core/sharegroups/tick.go",
	"internal/core/txn/tick.go",
}

func TestCoreIsHandedTime(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || !under(f.dir, "internal/core") {
			continue
		}
		selectors(f.ast, func(pkg, name string, n ast.Node) {
			if pkg == "time" && slices.Contains(clockReaders, name) && !slices.Contains(clockOwners, f.path) {
				t.Errorf("%s: time.%s in core; let the caller hand the time over, so that tests and the simulator can drive it", f.at(n), name)
			}
			if pkg == "kmsg" && (strings.HasSuffix(name, "Request") || strings.HasSuffix(name, "Response")) {
				t.Errorf("%s: kmsg.%s in core; fronts translate requests, core knows record formats only", f.at(n), name)
			}
		})
	}
}
