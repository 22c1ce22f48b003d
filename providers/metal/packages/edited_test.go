package packages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestEditedFilesStay: a package that came in is purged, and removed where one of
// its configuration files is somebody's.
func TestEditedFilesStay(t *testing.T) {
	for _, c := range []struct {
		name, edited string
		did          []string
		says         string
	}{
		{"as the package has them", "", []string{" jq-", "dpkg --purge jq"}, ""},
		{"written by hand", "edited\tjq\t/etc/jq.conf\n", []string{" jq-"}, "configuration of package jq left: not as the package had it: /etc/jq.conf; apt-get purge jq deletes it"},
	} {
		d, rec := newDouble(t)
		d.state, d.edited = jqState, c.edited
		d.simulate = map[string]string{"jq=1.6": "Inst jq (1.6 Debian:12/oldstable [amd64])\n", "jq-": "Remv jq [1.6]\n"}
		d.install = func([]string) hosttest.Answer {
			d.state = "pkg\tii \tok\tjq\tamd64\t1.6\n" + jqState
			return hosttest.Answer{}
		}
		if err := d.try(rec, Spec{Owner: "host", Packages: map[string]Package{"jq": {}}}); err != nil {
			t.Fatal(err)
		}
		d.did = nil
		outcomes, err := Restore(t.Context(), d, rec)
		if err != nil || !slices.EqualFunc(d.did, c.did, func(did, want string) bool { return strings.HasSuffix(did, want) }) {
			t.Errorf("%s: it did %q, %v", c.name, d.did, err)
		}
		said := ""
		for _, o := range outcomes {
			if strings.HasPrefix(o.Fact, "configuration ") && o.Expected {
				said += fmt.Sprintf("%s %s: %s", o.Fact, o.Fate, o.Why)
			}
		}
		if said != c.says {
			t.Errorf("%s: it says %q, want %q", c.name, said, c.says)
		}
		if keys := rec.Keys(Noted); len(keys) > 0 {
			t.Errorf("%s: the record still has %v", c.name, keys)
		}
	}
}

// TestEditedScript runs the script beside a dpkg-query and files of ucf that say what
// the real ones say.
func TestEditedScript(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const sumOfOne = "5bbf5a52328e7439ae6e719dfe712200" // of "one\n"
	same, other, gone := file("same", "one\n"), file("other", "two\n"), filepath.Join(dir, "gone")
	ucf, mine := file("ucf", "one\n"), file("mine", "three\n")
	file("hashfile", sumOfOne+"  "+ucf+"\n"+sumOfOne+"  "+mine+"\n"+sumOfOne+"  "+other+"\n")
	file("registry", "chrony "+ucf+"\nchrony "+mine+"\nsomebody "+other+"\n")
	file("dpkg-query", fmt.Sprintf(`#!/bin/sh
[ "$1 $2 $3 $4" = '-W -f ${Conffiles}\n --' ] || exit 2
case $5 in
jq) printf '\n %s %s\n %s %s\n %s %s obsolete\n %s newconffile\n' ;;
libjq1:i386 | chrony) echo ;;
*) echo "dpkg-query: no packages found matching $5" >&2; exit 1 ;;
esac
`, same, sumOfOne, gone, sumOfOne, other, sumOfOne, other))
	for _, c := range []struct {
		names []string
		want  map[string][]string
	}{
		{[]string{"jq", "libjq1:i386", "never", "chrony"}, map[string][]string{"jq": {other}, "chrony": {mine}}},
		{[]string{"never"}, map[string][]string{}},
	} {
		m := &hosttest.Machine{Answer: func(cmd host.Command) (hosttest.Answer, bool) {
			run := exec.CommandContext(t.Context(), cmd.Args[0], append([]string{"-c", strings.ReplaceAll(cmd.Args[2], "/var/lib/ucf/", dir+"/")}, cmd.Args[3:]...)...)
			run.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := run.Output()
			if err != nil {
				t.Error(err)
			}
			return hosttest.Answer{Stdout: string(out)}, true
		}}
		got, err := edited(t.Context(), m, c.names)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%v: %v %s", c.names, err, diff)
		}
	}
}
