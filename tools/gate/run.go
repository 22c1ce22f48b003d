package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// outcome is how a suite ended.
type outcome string

const (
	passed    outcome = "passed"
	failed    outcome = "FAILED"
	flaky     outcome = "FLAKY"
	unchanged outcome = "unchanged"
	skipped   outcome = "SKIPPED"

	interrupted outcome = "interrupted"
)

// result is what a suite has to show.
type result struct {
	name      string
	outcome   outcome
	detail    string // of a failure: the package and the test; of SKIPPED: the reason
	wall, cpu time.Duration
	whole     bool     // none of its packages was left out, as one that passed before
	flaky     []string // tests that passed at the second try
}

// maxFlaky is how many tests of one run may need a second try.
const maxFlaky = 2

// runner runs suites in one checkout.
type runner struct {
	ctx     context.Context // ends the processes of suites
	root    string
	cache   cache
	folders map[string]*folder
	inputs  *inputs
	out     io.Writer
	force   bool // runs what passed before as well
	build   bool // builds what suites need
	partial bool // of each suite only the tests that the caller chose

	linking sync.Mutex
	mu      sync.Mutex // guards out, and what follows
	flaky   int
	spent   time.Duration // CPU time of the suite that runs
	passed  int           // its tests that passed
	reason  string        // why one of its tests skipped itself
}

// newRunner reads a checkout. Suites that passed with the same inputs are not
// run again, except with force or the variable CI_ALL.
func newRunner(ctx context.Context, root string, c cache) (*runner, error) {
	all, err := folders(root)
	if err != nil {
		return nil, err
	}
	in, err := readInputs(root, all)
	if err != nil {
		return nil, err
	}
	return &runner{ctx: ctx, root: root, cache: c, folders: all, inputs: in, out: os.Stdout}, nil
}

// run runs one suite and says how it ended.
func (r *runner) run(s *suite) result {
	began := time.Now()
	r.spent, r.passed, r.reason = 0, 0, ""
	res := result{name: s.name}
	env, reason, err := r.provide(s)
	switch {
	case err != nil:
		res.outcome, res.detail = failed, err.Error()
	case reason != "":
		res.outcome, res.detail = skipped, reason
	case s.command != nil:
		r.runCommand(s, env, &res)
	default:
		r.runTests(s, env, &res)
	}
	if r.ctx.Err() != nil {
		res.outcome, res.detail = interrupted, ""
	}
	res.wall, res.cpu = time.Since(began), r.spent
	if res.whole && (res.outcome == passed || res.outcome == flaky) {
		if err := r.cache.keepCost(res); err != nil {
			res.outcome, res.detail = failed, err.Error()
		}
	}
	return res
}

// provide brings what a suite needs, and returns the environment of its tests.
// reason says why the suite is left out.
func (r *runner) provide(s *suite) (env []string, reason string, err error) {
	env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+flags(os.Getenv("GOFLAGS")))
	env = append(env, "STOKE_CI_HOME="+r.cache.path("home"))
	if s.race { // atexit_sleep_ms: each program, each command of a test too, would sleep for a second at its end
		env = append(env, "CGO_ENABLED=1", "GORACE=atexit_sleep_ms=0", "CGO_CFLAGS=-O2 -Wno-deprecated-declarations")
	}
	for _, v := range s.env {
		if name, _, _ := strings.Cut(v, "="); os.Getenv(name) == "" { // the caller's own comes first
			env = append(env, v)
		}
	}
	if s.command == nil && !slices.ContainsFunc(s.needs, func(n need) bool { return n.env == kubernetes.env }) {
		env = append(env, kubernetes.env+"="+r.cache.path("none")) // tests that need a cluster skip themselves
	}
	for _, n := range s.needs {
		script := append([]string{filepath.Join(r.root, n.script[0])}, n.script[1:]...)
		if n.where && !r.build {
			where := r.command(script[0], "where")
			where.Env = env
			dir, err := where.Output()
			if err != nil {
				return nil, "", fmt.Errorf("%s: %w", n.script[0], err)
			}
			if _, err := os.Stat(strings.TrimSpace(string(dir))); err != nil {
				return nil, n.name + " are not on this machine: make nightly builds them", nil
			}
		}
		install := r.command(script[0], script[1:]...)
		install.Env, install.Stderr = env, r.out
		out, err := install.Output()
		r.killLeft(install)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", n.script[0], err)
		}
		if n.env != "" {
			env = append(env, n.env+"="+filepath.Dir(strings.TrimSpace(string(out))))
		}
	}
	return env, "", nil
}

// buildFlags are those of the Makefile, so that all checkouts share what is compiled.
var buildFlags = []string{"-trimpath", "-gcflags=all=-dwarf=false"}

// flags are GOFLAGS with those that all is built with.
func flags(given string) string {
	all := strings.Fields(given)
	for _, f := range buildFlags {
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return strings.Join(all, " ")
}

// runCommand runs a suite that is one command. What its tests print names the
// package and the test that failed.
func (r *runner) runCommand(s *suite, env []string, res *result) {
	key := ""
	if !s.always {
		recipe := strings.Join(s.command, " ") + strings.Join(s.env, " ")
		for _, p := range s.packages {
			key += r.inputs.key(p, s.needs, recipe)
		}
		if when := r.cache.passed(s.name, key); when != "" && !r.force {
			res.outcome, res.detail = unchanged, "passed "+when
			return
		}
	}
	res.whole = true
	cmd := r.command(s.command[0], s.command[1:]...)
	cmd.Dir, cmd.Env = r.root, env
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		res.outcome, res.detail = failed, err.Error()
		return
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		res.outcome, res.detail = failed, err.Error()
		return
	}
	var culprit culprit
	for lines := bufio.NewReader(pipe); ; {
		line, err := lines.ReadString('\n')
		culprit.read(line)
		fmt.Fprint(r.out, line)
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	r.killLeft(cmd)
	r.count(cmd)
	res.outcome = passed
	if err != nil {
		res.outcome, res.detail = failed, culprit.String()
		if res.detail == "" {
			res.detail = err.Error()
		}
		return
	}
	if key != "" {
		if err := r.cache.pass(s.name, key); err != nil {
			res.outcome, res.detail = failed, err.Error()
		}
	}
}

// culprit finds the first failure in what go test prints.
type culprit struct{ pkg, test string }

var (
	failedTest    = regexp.MustCompile(`^\s*--- FAIL: (\S+)`)
	failedPackage = regexp.MustCompile(`^FAIL\s+(\S+)`)
)

func (c *culprit) read(line string) {
	if m := failedTest.FindStringSubmatch(line); m != nil && c.pkg == "" {
		if c.test == "" || strings.HasPrefix(m[1], c.test+"/") {
			c.test = m[1]
		}
	} else if m := failedPackage.FindStringSubmatch(line); m != nil && c.pkg == "" {
		c.pkg = m[1]
	}
}

func (c *culprit) String() string { return strings.TrimSpace(c.pkg + " " + c.test) }

func (r *runner) count(cmd *exec.Cmd) {
	if cmd.ProcessState != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
}

func (r *runner) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}

// job is one package of a suite.
type job struct {
	pkg   string
	names []string
	key   string
}

// recipe is all that decides how the tests of a suite are run, except sources.
func (s *suite) recipe(names []string) string {
	return fmt.Sprint(s.tags, s.only, s.race, s.short, s.env, s.parallel, names)
}

// runTests runs the tests of a suite, package by package.
func (r *runner) runTests(s *suite, env []string, res *result) {
	chosen, err := s.tests(r.folders)
	if err != nil {
		res.outcome, res.detail = failed, err.Error()
		return
	}
	var jobs []job
	for name, names := range chosen {
		slices.Sort(names)
		j := job{name, names, r.inputs.key(name, s.needs, s.recipe(names))}
		if when := r.cache.passed(s.name+"-"+name, j.key); when != "" && !r.force {
			r.printf("unchanged\t%s\tpassed %s\n", path.Join(module, name), when)
			continue
		}
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		res.outcome = unchanged
		return
	}
	res.whole = len(jobs) == len(chosen) && !r.partial
	// Packages that take longest have most tests, more often than not.
	slices.SortFunc(jobs, func(a, b job) int { return len(b.names) - len(a.names) })
	res.outcome = passed
	queue := make(chan job)
	var workers sync.WaitGroup
	for range max(1, s.processes) {
		workers.Go(func() {
			for j := range queue {
				again, detail := r.runJob(s, env, j)
				r.mu.Lock()
				res.flaky = append(res.flaky, again...)
				if detail != "" && res.outcome != failed {
					res.outcome, res.detail = failed, detail
				}
				r.mu.Unlock()
			}
		})
	}
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	workers.Wait()
	if res.outcome == passed && r.passed == 0 && r.reason != "" {
		res.outcome, res.detail = skipped, "every test skipped itself: "+r.reason
	}
	if res.outcome == passed && len(res.flaky) > 0 {
		res.outcome, res.detail = flaky, strings.Join(res.flaky, ", ")
	}
}

// runJob runs the tests of one package. detail names the failure, again the
// tests that passed at a second try.
func (r *runner) runJob(s *suite, env []string, j job) (again []string, detail string) {
	importPath := path.Join(module, j.pkg)
	program, err := r.link(s, env, j.pkg)
	if err != nil {
		r.printf("%s\nFAIL\t%s [build failed]\n", err, importPath)
		return nil, importPath
	}
	pattern := "^(" + strings.Join(j.names, "|") + ")$"
	if s.only != "" {
		pattern = s.only
	}
	began := time.Now()
	t := r.start(s, env, j.pkg, "", program, pattern, s.parallel)
	seconds := fmt.Sprintf("%.1f s", time.Since(began).Seconds())
	r.mu.Lock()
	r.passed += t.passed
	if t.reason != "" {
		r.reason = t.reason
	}
	r.mu.Unlock()
	if t.ok {
		r.printf("ok\t%s\t%s (%s)\n", importPath, seconds, t.counts())
		return nil, r.passJob(s, j, t)
	}
	r.printf("FAIL\t%s\t%s (%s)\n", importPath, seconds, t.counts())
	if !s.real || len(t.failed) == 0 || len(t.failed) > maxFlaky || t.ended < len(j.names) { // a panic leaves tests unrun
		return nil, strings.TrimSpace(importPath + " " + strings.Join(t.failed, " "))
	}
	for _, name := range t.failed {
		if !r.mayRetry() {
			return again, importPath + " " + name
		}
		pattern := "^" + name + "$"
		if s.only != "" {
			pattern = s.only
		}
		r.printf("again\t%s %s\n", importPath, name)
		if !r.start(s, env, j.pkg, "-again-"+name, program, pattern, 1).ok {
			return again, importPath + " " + name
		}
		r.printf("FLAKY\t%s %s\n", importPath, name)
		again = append(again, importPath+" "+name)
	}
	if err := r.cache.addFlaky(again); err != nil {
		return again, err.Error()
	}
	return again, r.passJob(s, j, t)
}

// passJob keeps a pass, except where a test skipped itself for want of a thing
// that the key does not have, such as root or terraform.
func (r *runner) passJob(s *suite, j job, t *trial) (detail string) {
	if t.skipped > 0 && len(s.tags) > 0 {
		return ""
	}
	if err := r.cache.pass(s.name+"-"+j.pkg, j.key); err != nil {
		return err.Error()
	}
	return ""
}

func (r *runner) mayRetry() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flaky++
	return r.flaky <= maxFlaky
}

// link returns the program of a package's tests. It is linked once for all
// suites with the same tags, and kept while its sources stay the same.
func (r *runner) link(s *suite, env []string, pkg string) (string, error) {
	build := []string{"test", "-c", "-vet=off", "-ldflags=-w", "-tags", strings.Join(s.tags, ",")}
	if s.race {
		build = append(build, "-race")
	}
	program := r.cache.path("tests", entry(pkg, r.inputs.key(pkg, nil, strings.Join(build, " "))), path.Base(module+"/"+pkg)+".test")
	r.linking.Lock()
	defer r.linking.Unlock()
	if now := time.Now(); os.Chtimes(filepath.Dir(program), now, now) == nil {
		return program, nil
	}
	folder := filepath.Dir(program)
	part := folder + ".part"
	cmd := r.command("go", append(build, "-o", filepath.Join(part, filepath.Base(program)), "./"+pkg)...)
	cmd.Dir, cmd.Env = r.root, env
	out, err := cmd.CombinedOutput()
	r.count(cmd)
	if err != nil {
		return "", fmt.Errorf("%s", out)
	}
	return program, os.Rename(part, folder)
}
