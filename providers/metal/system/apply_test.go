package system

import (
	"context"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// What is replaced is written down before it is replaced, and a value that the
// kernel refuses is not written down for the next boot.
func TestSysctlOrder(t *testing.T) {
	ctx := context.Background()
	want := Spec{Sysctl: map[string]string{"net.ipv4.ip_forward": "1", "vm.swappiness": "10"}}
	have := Facts{Sysctl: map[string]SysctlFacts{"net.ipv4.ip_forward": {State: SysctlValue, Live: "0"}, "vm.swappiness": {State: SysctlValue, Live: "60"}}}
	for _, refused := range []bool{false, true} {
		m := &hosttest.Machine{}
		const record = host.Root + "/host/record.json"
		m.Answer = func(cmd host.Command) (hosttest.Answer, bool) {
			if len(cmd.Args) < 3 || cmd.Args[2] != writeSysctl {
				return hosttest.Answer{}, false
			}
			for _, k := range []string{"net.ipv4.ip_forward", "vm.swappiness"} {
				if !strings.Contains(string(m.Files[record].Content), sysctlKey+k) {
					t.Errorf("%s is set before it is written down what it was", k)
				}
			}
			if refused {
				return hosttest.Answer{Stdout: "vm.swappiness\n", Stderr: "refused", Status: 1}, true
			}
			return hosttest.Answer{}, true
		}
		rec, err := host.NewRecord(ctx, m, "host", "id", "")
		if err != nil {
			t.Fatal(err)
		}
		err = Apply(ctx, m, rec, want, have)
		if (err != nil) != refused {
			t.Errorf("refused %v: %v", refused, err)
		}
		if _, there := m.Files[sysctlFile]; there == refused {
			t.Errorf("refused %v: %s there: %v", refused, sysctlFile, there)
		}
		if !refused {
			if text := string(m.Files[sysctlFile].Content); !strings.HasSuffix(text, "net.ipv4.ip_forward = 1\nvm.swappiness = 10\n") {
				t.Errorf("%s:\n%s", sysctlFile, text)
			}
			continue
		}
		outcomes, err := Restore(ctx, m, rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outcomes {
			if (o.Fate == host.Left) != (o.Fact == "sysctl vm.swappiness") {
				t.Errorf("%+v", o)
			}
		}
	}
}

// A sensitive file whose content is not at hand is not written as an empty one.
func TestContentUnknown(t *testing.T) {
	ctx := context.Background()
	m := &hosttest.Machine{Files: map[string]ssh.File{"/etc/token": {Path: "/etc/token", Content: []byte("old")}}}
	rec, err := host.NewRecord(ctx, m, "host", "id", "")
	if err != nil {
		t.Fatal(err)
	}
	want := File{Digest: Digest("s", []byte("secret")), Salt: "s", Sensitive: true, Mode: 0o600, Owner: "root", Group: "root"}
	have := Facts{Files: map[string]FileFacts{"/etc/token": {Type: "regular file", Digest: Digest("s", []byte("old")), Mode: 0o600, Owner: [2]string{"0", "root"}, Group: [2]string{"0", "root"}}}}
	if err := Apply(ctx, m, rec, Spec{Files: map[string]File{"/etc/token": want}}, have); err == nil {
		t.Error("no error")
	}
	if got := string(m.Files["/etc/token"].Content); got != "old" {
		t.Errorf("it holds %q", got)
	}
	want.Content = []byte("secret")
	if err := Apply(ctx, m, rec, Spec{Files: map[string]File{"/etc/token": want}}, have); err != nil {
		t.Fatal(err)
	}
	if got := string(m.Files["/etc/token"].Content); got != "secret" {
		t.Errorf("it holds %q", got)
	}
	for name, f := range m.Files {
		if name != "/etc/token" && strings.Contains(string(f.Content), "secret") {
			t.Errorf("the secret is in %s", name)
		}
	}
}
