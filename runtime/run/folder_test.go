package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

func sample() spec.Spec {
	s := spec.Default()
	s.Name, s.Model = "mnist", "mnist-cnn"
	s.Dataset = spec.Dataset{Path: "/data/mnist", Hash: "sha256:1"}
	return s
}

func TestFolderCreate(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "runs", "mnist-1"))
	s := sample()
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	token, err := f.ReadToken()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Token())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("token's mode is %v (%v)", info.Mode(), err)
	}
	if st, err := f.Status(); err != nil || st.Phase != spec.Pending {
		t.Errorf("status %+v, %v", st, err)
	}
	s.Worker.Replicas = 3
	if err := f.Create(s); err != nil {
		t.Errorf("creating the same run again: %v", err)
	}
	if again, _ := f.ReadToken(); again != token {
		t.Error("the token changed")
	}
	if got, err := f.ReadSpec(); err != nil || got != s {
		t.Errorf("spec %+v, %v", got, err)
	}
	s.Seed++
	if err := f.Create(s); err == nil {
		t.Error("another run took the folder over")
	}
}

func TestStatusOfALostRun(t *testing.T) {
	f := Folder(t.TempDir())
	if err := f.Create(sample()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := Process{PID: cmd.Process.Pid, Start: 1, Boot: "x"}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ written, want spec.Phase }{
		{spec.Running, spec.Lost}, {spec.Pending, spec.Lost}, {spec.Succeeded, spec.Succeeded}, {spec.Failed, spec.Failed}, {spec.Stopped, spec.Stopped},
	} {
		if err := WriteJSON(f.Supervisor(), Supervisor{Process: p}); err != nil {
			t.Fatal(err)
		}
		if err := WriteJSON(f.StatusFile(), spec.Status{Phase: tt.written}); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Status(); err != nil || got.Phase != tt.want {
			t.Errorf("%s with no supervisor: %s, %v; want %s", tt.written, got.Phase, err, tt.want)
		}
	}
}

func TestReadSpecRefusesBadFiles(t *testing.T) {
	f := Folder(t.TempDir())
	for name, content := range map[string]string{
		"empty": "", "no JSON": "\x00\x01", "wrong type": `{"epochs": "two"}`, "invalid": `{"model":"softmax"}`,
	} {
		if err := os.WriteFile(f.Spec(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadSpec(); err == nil {
			t.Errorf("%s: read without an error", name)
		}
	}
}
