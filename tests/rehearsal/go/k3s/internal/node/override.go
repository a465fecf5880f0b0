package node

import "strings"

// Override lays a user's `name=value` arguments over a component's own, by k3s's rule: the user's replace the own one;
// given more than once they all stay; name+ puts the value behind the own one, name- before it. Every value is a flag
// of its own, so that a component that takes several sees several.
func Override(own, users []string) []string {
	initial := map[string]string{}
	for _, arg := range own {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		initial[name] = value
	}
	var order []string
	given := map[string][]string{}
	for _, text := range users {
		word, value, hasValue := strings.Cut(strings.TrimPrefix(text, "--"), "=")
		if !hasValue {
			value = "true"
		}
		name := strings.TrimRight(word, "+-")
		values, again := given[name]
		if !again {
			order = append(order, name)
		}
		if before, ok := initial[name]; ok && !again && word != name {
			values = []string{before}
		}
		if strings.HasSuffix(word, "-") {
			given[name] = append([]string{value}, values...)
		} else {
			given[name] = append(values, value)
		}
	}
	var args []string
	for _, arg := range own {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if _, replaced := given[name]; !replaced {
			args = append(args, arg)
		}
	}
	for _, name := range order {
		for _, value := range given[name] {
			args = append(args, "--"+name+"="+value)
		}
	}
	return args
}
