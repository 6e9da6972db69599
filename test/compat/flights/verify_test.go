//go:build unix

package flights

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

const testPartitions = 4

// honest is a source of n records and the deliveries that a right broker makes.
func honest(t *testing.T, n int) (*Source, []string) {
	t.Helper()
	var file, lines []string
	next := make([]int64, testPartitions)
	partitioner := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	for i := range n {
		key, value := fmt.Sprintf("k%d", i%7), fmt.Sprintf("%d,x", i)
		file = append(file, key+"\t"+value)
		p := partitioner.Partition(&kgo.Record{Key: []byte(key)}, testPartitions)
		lines = append(lines, fmt.Sprintf("t\t%d\t%d\t%s\t%s", p, next[p], key, value))
		next[p]++
	}
	path := filepath.Join(t.TempDir(), "source.tsv")
	write(t, path, file)
	s, err := ReadSource(path)
	if err != nil {
		t.Fatal(err)
	}
	return s, lines
}

func write(t *testing.T, path string, lines []string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCheckAcceptsAKilledMembersTail(t *testing.T) {
	s, lines := honest(t, 40)
	killed, other := filepath.Join(t.TempDir(), "killed"), filepath.Join(t.TempDir(), "other")
	write(t, killed, lines[:20])
	write(t, other, lines[15:])
	sums, err := Check(map[string]*Source{"t": s}, testPartitions, []Output{
		{Path: other}, {Path: killed, Killed: true, Committed: 15},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := sums["t"]; got.Records != 40 || got.Duplicates != 5 {
		t.Fatalf("got %+v", got)
	}
}

func TestCheckFindsEachFault(t *testing.T) {
	swapOffsets := func(lines []string) []string {
		// Records 0 and 7 have one key: exchange where they lie.
		a, b := strings.Split(lines[0], "\t"), strings.Split(lines[7], "\t")
		a[2], b[2] = b[2], a[2]
		lines[0], lines[7] = strings.Join(b, "\t"), strings.Join(a, "\t")
		return lines
	}
	otherPartition := func(lines []string) []string {
		f := strings.Split(lines[39], "\t")
		f[1], f[2] = map[bool]string{true: "1", false: "0"}[f[1] == "0"], "1000"
		lines[39] = strings.Join(f, "\t")
		return lines
	}
	for name, tc := range map[string]struct {
		fault func([]string) []string
		says  string
	}{
		"lost":         {func(l []string) []string { return append(l[:9], l[10:]...) }, "record 9 (key k2) is lost"},
		"again":        {func(l []string) []string { return append(l, l[3]) }, "delivered again though"},
		"altered":      {func(l []string) []string { l[5] += "y"; return l }, "record 5 came as"},
		"reordered":    {swapOffsets, "an earlier one has"},
		"out of order": {func(l []string) []string { l[0], l[7] = l[7], l[0]; return l }, "came after"},
		"partition":    {otherPartition, "murmur2 says"},
		"stored twice": {func(l []string) []string {
			f := strings.Split(l[4], "\t")
			f[2] = "999"
			return append(l, strings.Join(f, "\t"))
		}, "stored twice"},
		"made up": {func(l []string) []string { return append(l, "t\t0\t77\tk1\t4711,x") }, "was not sent to this topic"},
	} {
		t.Run(name, func(t *testing.T) {
			s, lines := honest(t, 40)
			out := filepath.Join(t.TempDir(), "out")
			write(t, out, tc.fault(lines))
			_, err := Check(map[string]*Source{"t": s}, testPartitions, []Output{{Path: out}})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v, want %q", err, tc.says)
			}
		})
	}
}

func TestCheckAllowsTheTailOnlyOnce(t *testing.T) {
	s, lines := honest(t, 10)
	killed, other := filepath.Join(t.TempDir(), "killed"), filepath.Join(t.TempDir(), "other")
	write(t, killed, lines[:4])
	write(t, other, append(lines[2:], lines[3]))
	_, err := Check(map[string]*Source{"t": s}, testPartitions, []Output{{Path: killed, Killed: true, Committed: 2}, {Path: other}})
	if err == nil || !strings.Contains(err.Error(), "record 3") {
		t.Fatalf("got %v", err)
	}
}
