//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/cmd/programtest"
)

// ResNet-20 learns CIFAR-10 by the example. With STOKE_CURVE=FILE the test draws its
// curve, which docs/models.md shows.
func TestResNet(t *testing.T) {
	data := os.Getenv("STOKE_TEST_DATA")
	if data == "" {
		t.Skip("STOKE_TEST_DATA names no folder with cifar10")
	}
	c := &training{t: t, dir: t.TempDir(), stoke: programtest.Path(t, "stoke")}
	text, err := os.ReadFile("../../examples/cifar10/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	pictures := "pictures=" + filepath.Join(data, "cifar10")
	c.run("apply", "-auto-approve", "-var", pictures)
	read := func(args ...string) []byte {
		t.Helper()
		out, err := exec.Command(c.stoke, append([]string{"-chdir=" + c.dir}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	curve := readCurve(t, read("metrics", "-json", "-var", pictures, "train_experiment.resnet20"))
	accuracy, err := strconv.ParseFloat(strings.TrimSpace(string(read("output", "-raw", "accuracy"))), 64)
	t.Logf("accuracy %v; %.0f CPU seconds of all roles", accuracy, curve.processor)
	if err != nil || accuracy < 0.7 {
		t.Errorf("the accuracy is %v (%v), want at least 0.7", accuracy, err)
	}
	if name := os.Getenv("STOKE_CURVE"); name != "" {
		if err := os.WriteFile(name, curve.draw(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.run("destroy", "-auto-approve", "-var", pictures)
}

// point is a value at a step.
type point struct{ step, value float64 }

// curve is what a run has measured.
type curve struct {
	losses, accuracies []point
	processor          float64 // seconds of all roles
}

func readCurve(t *testing.T, lines []byte) *curve {
	t.Helper()
	c, before := new(curve), make(map[string]time.Time)
	for line := range bytes.Lines(lines) {
		var e struct {
			Time    time.Time
			Type    string
			Step    float64
			Loss    *float64
			Metrics map[string]float64
			Usage   *struct {
				Role string
				CPU  float64
			}
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch {
		case e.Type == "evaluation":
			c.accuracies = append(c.accuracies, point{e.Step, e.Metrics["accuracy"]})
		case e.Usage != nil:
			if last, ok := before[e.Usage.Role]; ok {
				c.processor += e.Usage.CPU * e.Time.Sub(last).Seconds()
			}
			before[e.Usage.Role] = e.Time
		case e.Loss != nil:
			c.losses = append(c.losses, point{e.Step, *e.Loss})
		}
	}
	return c
}

// draw returns the curve as SVG: the mean loss of 32 updates, and the accuracy.
func (c *curve) draw() []byte {
	const width, height, left, top, inner, low = 720.0, 360.0, 50.0, 20.0, 610.0, 290.0
	last := c.losses[len(c.losses)-1].step
	x := func(step float64) float64 { return left + inner*step/last }
	most := 0.0
	var means []point
	for at := 0; at+32 <= len(c.losses); at += 32 {
		sum := 0.0
		for _, p := range c.losses[at : at+32] {
			sum += p.value / 32
		}
		means = append(means, point{c.losses[at+16].step, sum})
		most = max(most, sum)
	}
	most = math.Ceil(most*2) / 2
	path := func(points []point, most float64) string {
		var b strings.Builder
		for i, p := range points {
			fmt.Fprintf(&b, "%c%.1f %.1f", "ML"[min(i, 1)], x(p.step), top+low*(1-p.value/most))
		}
		return b.String()
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" font-family="sans-serif" font-size="12" fill="none">`+"\n", width, height)
	fmt.Fprintf(&b, "<rect width=\"%v\" height=\"%v\" fill=\"#fff\"/>\n", width, height)
	for i := range 5 {
		share := float64(i) / 4
		y := top + low*(1-share)
		fmt.Fprintf(&b, "<path d=\"M%v %.1fH%v\" stroke=\"#ddd\"/>\n", left, y, left+inner)
		fmt.Fprintf(&b, "<text x=\"%v\" y=\"%.1f\" fill=\"#1b5e9e\" text-anchor=\"end\">%.2f</text>\n", left-6, y+4, share*most)
		fmt.Fprintf(&b, "<text x=\"%v\" y=\"%.1f\" fill=\"#b3430c\">%.0f %%</text>\n", left+inner+6, y+4, 100*share)
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%v\" fill=\"#444\" text-anchor=\"middle\">%.0f</text>\n", x(share*last), top+low+18, share*last)
	}
	fmt.Fprintf(&b, "<path d=\"%s\" stroke=\"#1b5e9e\" stroke-width=\"1.5\"/>\n", path(means, most))
	fmt.Fprintf(&b, "<path d=\"%s\" stroke=\"#b3430c\" stroke-width=\"1.5\"/>\n", path(c.accuracies, 1))
	for _, p := range c.accuracies {
		fmt.Fprintf(&b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#b3430c\"/>\n", x(p.step), top+low*(1-p.value))
	}
	fmt.Fprintf(&b, "<text x=\"%v\" y=\"%v\" fill=\"#1b5e9e\">training loss, mean of 32 updates</text>\n", left, height-8)
	fmt.Fprintf(&b, "<text x=\"%v\" y=\"%v\" fill=\"#444\" text-anchor=\"middle\">updates of 64 pictures</text>\n", left+inner/2+20, height-8)
	fmt.Fprintf(&b, "<text x=\"%v\" y=\"%v\" fill=\"#b3430c\" text-anchor=\"end\">accuracy on the test pictures</text>\n</svg>\n", left+inner, height-8)
	return b.Bytes()
}
