//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestParityTerraform holds the golden files against a real Terraform; with
// -update it writes them.
func TestParityTerraform(t *testing.T) {
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	terraform := &tool{name: "terraform", path: path, env: []string{reattached(t)}}
	for _, c := range parityCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(corpus, c.name+".golden")
			if *rewrite {
				if err := os.WriteFile(name, []byte(c.run(t, terraform)), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			golden, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // Terraform's own answer is not the same every time
				d := lineDiff(string(golden), c.run(t, terraform))
				if d == "" {
					return
				}
				t.Logf("terraform (+) answers otherwise than %s (-) says:\n%s", name, d)
			}
			t.Error("three times of three")
		})
	}
}

// TestParityTerraformFunctions holds functionCases against Terraform's console.
func TestParityTerraformFunctions(t *testing.T) {
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	all := expressions(t)
	// One folder for each console that runs: it locks the state there.
	dirs := make(chan string, 2)
	dirs <- functionFiles(t)
	dirs <- functionFiles(t)
	ask := func(e *expression) []string {
		dir := <-dirs
		defer func() { dirs <- dir }()
		cmd := exec.Command(path, "console")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(e.text+"\n")
		cmd.Env = []string{"HOME=/home/nobody", "CHECKPOINT_DISABLE=1"}
		out, err := cmd.Output()
		if err != nil {
			return answer(1, "")
		}
		return answer(0, string(out))
	}
	console := func(e *expression) (last []string) {
		for range 3 { // Terraform's own answer is not the same every time
			last = ask(e)
			if *rewrite || strings.Join(last, "\n") == strings.Join(e.want, "\n") {
				break
			}
		}
		return last
	}
	answers := make([][]string, len(all))
	var two errgroup.Group
	two.SetLimit(2)
	for i, e := range all {
		two.Go(func() error { answers[i] = console(e); return nil })
	}
	_ = two.Wait() // they return no errors
	var text strings.Builder
	for i, e := range all {
		if !*rewrite && strings.Join(answers[i], "\n") != strings.Join(e.want, "\n") {
			t.Errorf("%s\n  terraform says %q\n  not %q", e.text, answers[i], e.want)
		}
		text.WriteString(e.text + "\n" + strings.Join(answers[i], "\n") + "\n")
		for _, line := range e.otherwise {
			text.WriteString("~ " + line + "\n")
		}
	}
	if *rewrite {
		if err := os.WriteFile(functionCases, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
