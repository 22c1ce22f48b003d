package archive

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers"
)

// fake is a run with hostile names and a secret.
type fake struct{ fails bool }

func (r fake) Status(context.Context) (providers.RunStatus, error) {
	return providers.RunStatus{Trains: true, Run: "run-1", Phase: "succeeded", Message: "open-sesame", Roles: []providers.RunRole{
		{Name: "worker-0"}, {Name: "../../etc/passwd"}, {Name: "______etc_passwd"}, {Name: "silent"}, {Name: "lost"},
	}}, nil
}

func (r fake) Logs(_ context.Context, o providers.RunLogs, line func(providers.RunLine) error) error {
	switch o.Role {
	case "silent":
		return nil
	case "lost", "supervisor":
		return errors.New("the node does not answer")
	case "worker-0":
		return errors.Join(line(providers.RunLine{Role: "worker-0", Text: "begins with open-sesame"}), line(providers.RunLine{Role: "rank-0", Text: "trains"}))
	}
	return line(providers.RunLine{Role: o.Role, Text: "x"})
}

func (r fake) Metrics(_ context.Context, o providers.RunMetrics, event func(providers.RunEvent) error) error {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	err := errors.Join(
		event(providers.RunEvent{Number: 1, Time: at, Type: "update", Step: 1, Values: map[string]float64{"loss": 2}, JSON: json.RawMessage(`{"n":1,"loss":2}`)}),
		event(providers.RunEvent{Number: 2, Time: at, Type: "end", Step: 1, JSON: json.RawMessage(`{"n":2,"message":"open-sesame"}`)}),
	)
	if r.fails {
		return errors.New("connection reset by peer")
	}
	return err
}

func content(r providers.Run) Content {
	return Content{Name: "train_experiment.a", Run: r, Configuration: map[string]string{"worker.replicas": "2"},
		Clean: func(text string) string { return strings.ReplaceAll(text, "open-sesame", "(sensitive value)") }}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.zip")
	if err := Create(t.Context(), path, false, content(fake{})); err != nil {
		t.Fatal(err)
	}
	got := read(t, path)
	if status := got["status.json"]; !strings.Contains(status, `"address": "train_experiment.a"`) || !strings.Contains(status, `"message": "(sensitive value)"`) {
		t.Errorf("the status is %s", status)
	}
	delete(got, "status.json")
	want := map[string]string{
		"logs/lost.log":               "(these logs cannot be read: the node does not answer)\n",
		"configuration.json":          "{\n  \"worker.replicas\": \"2\"\n}\n",
		"metrics.jsonl":               "{\"n\":1,\"loss\":2}\n{\"n\":2,\"message\":\"(sensitive value)\"}\n",
		"metrics.csv":                 "number,time,type,epoch,step,name,value\n1,2026-01-02T03:04:05Z,update,0,1,loss,2\n2,2026-01-02T03:04:05Z,end,0,1,,\n",
		"logs/worker-0.log":           "begins with (sensitive value)\nrank-0 | trains\n",
		"logs/______etc_passwd.log":   "x\n",
		"logs/______etc_passwd-2.log": "x\n",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}

	if err := Create(t.Context(), path, false, content(fake{})); !errors.Is(err, os.ErrExist) {
		t.Errorf("over an existing file: %v", err)
	}
	if err := Create(t.Context(), path, true, content(fake{fails: true})); err == nil || len(read(t, path)) != 8 {
		t.Errorf("after a failure: %v, %d entries", err, len(read(t, path)))
	}
	if err := Create(t.Context(), path, true, content(fake{})); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

func read(t *testing.T, path string) map[string]string {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := make(map[string]string)
	for _, f := range r.File {
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name] = string(text)
	}
	return all
}
