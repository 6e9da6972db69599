package config

import (
	"errors"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// parseFile calls set for each key of a YAML mapping of scalars. Every fault is
// reported, with file, line and key.
func parseFile(path string, data []byte, set func(o Option, value string, line int) error) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(doc.Content) == 0 { // empty, or only comments
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: the file must be a list of `option: value` lines", path, root.Line)
	}
	var faults []error
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("%s:%d: %s: "+format, append([]any{path, key.Line, key.Value}, args...)...))
		}
		o, ok := lookup(func(o Option) bool { return o.Name == key.Value })
		switch first, again := seen[key.Value]; {
		case !ok:
			fault("unknown option%s", didYouMean(key.Value))
		case again:
			fault("given twice; the first is on line %d", first)
		case value.Kind != yaml.ScalarNode:
			fault("takes one value, not a list or a mapping")
		default:
			if err := set(o, scalar(value), key.Line); err != nil {
				fault("%w", err)
			}
		}
		seen[key.Value] = key.Line
	}
	return errors.Join(faults...)
}

func didYouMean(name string) string {
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.Name
		if o.Env == name { // the variable's name instead of the key
			return fmt.Sprintf("; did you mean %q?", o.Name)
		}
	}
	if guess := nearest(name, names); guess != "" {
		return fmt.Sprintf("; did you mean %q?", guess)
	}
	return "; `daybook serve --help` lists them"
}

// scalar is the text of a value. YAML reads a bare `off` as a boolean in old
// versions and as text in new ones; taking the text as written settles that.
func scalar(n *yaml.Node) string {
	if n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// yamlScalar quotes what YAML would not read back as the same text.
func yamlScalar(s string) string {
	var n yaml.Node
	if s == "" || yaml.Unmarshal([]byte("k: "+s), &n) != nil || len(n.Content) == 0 ||
		len(n.Content[0].Content) != 2 || scalar(n.Content[0].Content[1]) != s {
		return strconv.Quote(s)
	}
	return s
}
