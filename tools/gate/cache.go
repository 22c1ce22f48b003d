package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cache is a folder of this machine with what earlier runs leave for later
// ones: passes, names of flaky tests, linked tests, logs, a checkout.
type cache string

func openCache() (cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	c := cache(filepath.Join(dir, "stoke-ci"))
	for _, name := range []string{"passed", "tests", "logs", "costs"} {
		if err := os.MkdirAll(c.path(name), 0o755); err != nil {
			return "", err
		}
	}
	c.prune("passed", 14*24*time.Hour)
	c.prune("tests", 2*24*time.Hour)
	return c, nil
}

func (c cache) path(names ...string) string {
	return filepath.Join(append([]string{string(c)}, names...)...)
}

// prune removes entries that were not used for a time.
func (c cache) prune(name string, age time.Duration) {
	entries, _ := os.ReadDir(c.path(name))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > age {
			_ = os.RemoveAll(c.path(name, e.Name()))
		}
	}
}

// passed returns when the tests of a key passed on this machine, "" where they
// did not.
func (c cache) passed(name, key string) string {
	text, err := os.ReadFile(c.path("passed", entry(name, key)))
	if err != nil || os.Getenv("CI_ALL") != "" {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func (c cache) pass(name, key string) error {
	return os.WriteFile(c.path("passed", entry(name, key)), []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o644)
}

func entry(name, key string) string { return strings.ReplaceAll(name, "/", "-") + "-" + key }

// keepCost keeps what a suite cost that was run whole.
func (c cache) keepCost(r result) error {
	text := fmt.Sprintf("%.0f %.0f %s\n", r.wall.Seconds(), r.cpu.Seconds(), time.Now().UTC().Format(time.DateOnly))
	return os.WriteFile(c.path("costs", r.name), []byte(text), 0o644)
}

// cost returns the seconds of wall clock and of CPU time that a suite took here when it was
// last run whole, and the day; an empty day: it was not.
func (c cache) cost(name string) (wall, cpu int, day string) {
	text, err := os.ReadFile(c.path("costs", name))
	if err == nil {
		_, err = fmt.Sscan(string(text), &wall, &cpu, &day)
	}
	if err != nil {
		return 0, 0, ""
	}
	return wall, cpu, day
}

// flaky returns the names of tests that failed and passed at a second try,
// newest last, each once.
func (c cache) flaky() []string {
	text, _ := os.ReadFile(c.path("flaky.log"))
	var names []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if names = slices.DeleteFunc(names, func(n string) bool { return after(n) == after(line) }); line != "" {
			names = append(names, line)
		}
	}
	return names
}

// after is a line of the log without its time.
func after(line string) string {
	_, name, _ := strings.Cut(line, " ")
	return name
}

func (c cache) addFlaky(names []string) error {
	if len(names) == 0 {
		return nil
	}
	f, err := os.OpenFile(c.path("flaky.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := fmt.Fprintf(f, "%s %s\n", time.Now().UTC().Format(time.RFC3339), name); err != nil {
			_ = f.Close()
			return err
		}
	}
	return f.Close()
}
