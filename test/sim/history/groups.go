package history

import (
	"cmp"
	"slices"
)

type groupPart struct {
	group string
	part  Part
}

// offsetsForward: who fetches a group's position after somebody else has fetched
// it does not get an earlier one. It holds for groups whose members only go on.
func (c *checker) offsetsForward() {
	byPart := map[groupPart][]OffsetRead{}
	for _, r := range c.Offsets {
		k := groupPart{r.Group, r.Part}
		byPart[k] = append(byPart[k], r)
	}
	for k, rs := range byPart {
		byEnd := slices.Clone(rs)
		slices.SortFunc(byEnd, func(a, b OffsetRead) int { return cmp.Compare(a.Completed, b.Completed) })
		slices.SortFunc(rs, func(a, b OffsetRead) int { return cmp.Compare(a.Invoked, b.Invoked) })
		high, i := int64(-1), 0
		for _, r := range rs {
			for ; i < len(byEnd) && byEnd[i].Completed < r.Invoked; i++ {
				high = max(high, byEnd[i].Offset)
			}
			if r.Offset < high {
				c.report(OffsetBack, "group %s, %v: %d after %d", k.group, k.part, r.Offset, high)
			}
		}
		if end, ok := c.Final.Offsets[k.group][k.part]; ok {
			for ; i < len(byEnd); i++ {
				high = max(high, byEnd[i].Offset)
			}
			if end < high {
				c.report(OffsetBack, "group %s, %v: %d in the end, after %d", k.group, k.part, end, high)
			}
		}
	}
}

// offsetsKept: an acknowledged position, alone or in a committed transaction, is
// not lost, neither to later fetches nor in the end.
func (c *checker) offsetsKept() {
	for _, cm := range c.Commits {
		done := cm.Completed
		if cm.Outcome != OK {
			continue
		}
		if cm.Txn != nil {
			if !cm.Txn.mustBeCommitted() {
				continue
			}
			done = cm.Txn.Returned
		}
		if end := c.finalOffset(cm.Group, cm.Part); end < cm.Offset {
			c.report(LostOffset, "group %s, %v: committed %d, in the end %d", cm.Group, cm.Part, cm.Offset, end)
		}
		for _, r := range c.Offsets {
			if r.Group == cm.Group && r.Part == cm.Part && r.Invoked > done && r.Offset < cm.Offset {
				c.report(LostOffset, "group %s, %v: committed %d, then fetched %d", cm.Group, cm.Part, cm.Offset, r.Offset)
			}
		}
	}
}

func (c *checker) finalOffset(group string, part Part) int64 {
	if o, ok := c.Final.Offsets[group][part]; ok {
		return o
	}
	return -1
}

// processing: exactly one output in the final log for each input below the group's
// final position, none above it.
func (c *checker) processing() {
	outputs := map[Source]int{}
	for _, w := range c.Writes {
		if w.Source == nil || len(c.final[w.Value]) == 0 {
			continue
		}
		outputs[*w.Source]++
		if outputs[*w.Source] == 2 {
			c.report(ProcessedTwo, "group %s, input %v@%d", w.Source.Group, w.Source.Part, w.Source.Offset)
		}
		if end := c.finalOffset(w.Source.Group, w.Source.Part); w.Source.Offset >= end {
			c.report(ProcessedTwo, "group %s, input %v@%d has an output and lies at or above the position %d", w.Source.Group, w.Source.Part, w.Source.Offset, end)
		}
	}
	for _, k := range c.processed() {
		end := c.finalOffset(k.group, k.part)
		for _, r := range c.Final.Log[k.part] {
			if r.Offset < end && outputs[Source{k.group, k.part, r.Offset}] == 0 {
				c.report(NotProcessed, "group %s, input %v@%d, position %d", k.group, k.part, r.Offset, end)
			}
		}
	}
}

// processed lists the inputs that some group makes outputs from.
func (c *checker) processed() []groupPart {
	var out []groupPart
	seen := map[groupPart]bool{}
	for _, w := range c.Writes {
		if w.Source == nil {
			continue
		}
		if k := (groupPart{w.Source.Group, w.Source.Part}); !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}
