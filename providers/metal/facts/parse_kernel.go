package facts

import (
	"slices"
	"strconv"
	"strings"
)

func (a *answer) kernel(running string) Kernel {
	k := Kernel{Running: running, Installed: []string{}}
	for _, line := range a.sections["kernels"] {
		if v := kernelOf(a.word("kernels", line)); v != "" {
			k.Installed = append(k.Installed, v)
		}
	}
	k.Installed = slices.Compact(k.Installed)
	if v := a.grub(); v != "" {
		k.Next, k.DecidedBy = v, "grub"
		return k
	}
	for _, line := range a.sections["links"] {
		if v := kernelOf(a.word("links", line)); v != "" {
			k.Next, k.DecidedBy = v, "link"
			return k
		}
	}
	if n := len(k.Installed); n > 0 {
		k.Next, k.DecidedBy = k.Installed[n-1], "newest"
		return k
	}
	k.Next, k.DecidedBy = running, "running"
	return k
}

// kernelOf is the version in a path such as /boot/vmlinuz-6.1.0-18-amd64; ""
// when there is none.
func kernelOf(path string) string {
	base := path[strings.LastIndexByte(path, '/')+1:]
	for _, p := range []string{"vmlinuz-", "vmlinux-"} {
		if v, ok := strings.CutPrefix(base, p); ok {
			return v
		}
	}
	return ""
}

// entry is one of GRUB's, or a submenu of them.
type entry struct {
	title, id string
	kernel    string
	entries   []*entry
}

// grub follows grub.cfg as GRUB does: what it boots once (next_entry), else the
// default, else the first entry. "" where there is no grub.cfg, or where it
// boots no kernel that has a version in its name.
func (a *answer) grub() string {
	root, defaults := a.menu()
	if len(root.entries) == 0 {
		return ""
	}
	env := map[string]string{}
	for _, line := range a.sections["grubenv"] {
		if key, value, ok := strings.Cut(line, "="); ok {
			env[key] = value
		}
	}
	wanted := ""
	for _, d := range defaults {
		switch d {
		case "${next_entry}":
			if env["next_entry"] != "" { // the other branch does not count then
				return find(root, env["next_entry"])
			}
		case "${saved_entry}":
			wanted = env["saved_entry"]
		default:
			wanted = d
		}
	}
	return find(root, wanted)
}

// menu reads the lines of grub.cfg that the script keeps: the begin and end of
// blocks, kernels, and the default.
func (a *answer) menu() (root *entry, defaults []string) {
	root = &entry{}
	stack := []*entry{root}
	for _, line := range a.sections["grub"] {
		line = strings.TrimSpace(line)
		top := stack[len(stack)-1]
		command, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		switch {
		case line == "}" || strings.HasPrefix(line, "} "):
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
		case command == "menuentry" || command == "submenu":
			words := shellWords(rest)
			e := &entry{}
			if len(words) > 0 {
				e.title = words[0]
			}
			for i, w := range words[:max(len(words)-1, 0)] {
				if w == "$menuentry_id_option" || w == "--id" {
					e.id = words[i+1]
				}
			}
			top.entries = append(top.entries, e)
			stack = append(stack, e)
		case strings.HasSuffix(line, "{"):
			stack = append(stack, &entry{}) // a function
		case command == "linux" || command == "linux16" || command == "linuxefi":
			if words := shellWords(rest); len(words) > 0 && top.kernel == "" {
				top.kernel = kernelOf(words[0])
			}
		case strings.HasPrefix(line, "set default="):
			defaults = append(defaults, strings.Join(shellWords(strings.TrimPrefix(line, "set default=")), " "))
		}
		if len(stack) > 64 {
			a.addUnreadable("grub", line)
			return root, defaults
		}
	}
	return root, defaults
}

func shellWords(s string) []string {
	var words []string
	var b strings.Builder
	quote, inside := byte(0), false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == '\'':
			b.WriteByte(c)
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inside = c, true
		case quote == 0 && c == ' ':
			if inside || b.Len() > 0 {
				words = append(words, b.String())
				b.Reset()
				inside = false
			}
		default:
			b.WriteByte(c)
		}
	}
	if inside || b.Len() > 0 {
		words = append(words, b.String())
	}
	return words
}

// find is the kernel of the entry that is called "1>2", by number, title or id
// on each level; the first entry's where there is no such entry.
func find(root *entry, wanted string) string {
	at := root
	for part := range strings.SplitSeq(wanted, ">") {
		if at = choose(at, part); at == nil {
			break
		}
	}
	if at == nil {
		at = root.entries[0]
	}
	for at.kernel == "" && len(at.entries) > 0 { // a submenu opens at its first
		at = at.entries[0]
	}
	return at.kernel
}

func choose(e *entry, name string) *entry {
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 0 && n < len(e.entries) {
			return e.entries[n]
		}
		return nil
	}
	if i := slices.IndexFunc(e.entries, func(c *entry) bool { return name != "" && (c.title == name || c.id == name) }); i >= 0 {
		return e.entries[i]
	}
	return nil
}
