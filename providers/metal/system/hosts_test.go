package system

import (
	"slices"
	"strings"
	"testing"
)

func TestRename(t *testing.T) {
	for _, c := range []struct{ name, text, to, old, want string }{
		{"Debian's line, with its domain", "127.0.0.1\tlocalhost\n127.0.1.1\told.lab old\n::1 ip6\n", "new", "old", "127.0.0.1\tlocalhost\n127.0.1.1\tnew.lab new\n::1 ip6\n"},
		{"aliases and the comment stay", "127.0.1.1 old db # mine\n", "new", "old", "127.0.1.1\tnew db # mine\n"},
		{"a name that only begins alike", "127.0.1.1 older old\n", "new", "old", "127.0.1.1\tolder new\n"},
		{"another name there", "127.0.1.1 other\n", "new", "old", "127.0.1.1\tnew other\n"},
		{"qualified", "127.0.1.1 old.lab old\n", "new.example.com", "old", "127.0.1.1\tnew.example.com new\n"},
		{"from qualified", "127.0.1.1 old.lab old\n", "new", "old.lab", "127.0.1.1\tnew.lab new\n"},
		{"no line", "127.0.0.1 localhost\n::1 localhost\n", "new", "old", "127.0.0.1 localhost\n127.0.1.1\tnew\n::1 localhost\n"},
		{"no line, no end of line", "127.0.0.1 localhost", "new", "old", "127.0.0.1 localhost\n127.0.1.1\tnew\n"},
		{"empty", "", "new", "old", "127.0.1.1\tnew\n"},
		{"known by another address", "127.0.0.1 localhost\n10.0.0.5 new\n", "new", "old", "127.0.0.1 localhost\n10.0.0.5 new\n"},
		{"already", "127.0.1.1 new\n", "new", "old", "127.0.1.1 new\n"},
		{"commented out", "#127.0.1.1 new\n127.0.0.1 localhost\n", "new", "old", "#127.0.1.1 new\n127.0.0.1 localhost\n127.0.1.1\tnew\n"},
	} {
		got := rename(c.text, c.to, c.old)
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if !hostsHold(got, c.to) {
			t.Errorf("%s: %q does not hold the name", c.name, got)
		}
		// putting the machine's own lines back undoes it
		if back := withOwnLines(got, ownLines(c.text)); strings.TrimSuffix(back, "\n") != strings.TrimSuffix(c.text, "\n") {
			t.Errorf("%s: put back as %q", c.name, back)
		}
	}
}

func FuzzRename(f *testing.F) {
	f.Add("127.0.0.1 localhost\n127.0.1.1 a.b a\n", "c", "a")
	f.Add("127.0.1.1 a\n127.0.1.1 b\n10.0.0.1 c", "c", "")
	f.Fuzz(func(t *testing.T, text, name, old string) {
		if ValidHostname(name) != nil {
			return
		}
		got := rename(text, name, old)
		if !hostsHold(got, name) {
			t.Errorf("%q renamed to %q is %q", text, name, got)
		}
		if again := rename(got, name, old); again != got {
			t.Errorf("renamed twice: %q, then %q", got, again)
		}
	})
}

func TestFstab(t *testing.T) {
	const text = "# /swap was here\nUUID=1 / ext4 defaults 0 1\n/swapfile none swap sw 0 0\n  /dev/sdb2\tswap\tswap\tdefaults\n#/old none swap sw\n/srv/swap /mnt ext4 swap 0 0"
	const want = "# /swap was here\nUUID=1 / ext4 defaults 0 1\n#stoke-swap# /swapfile none swap sw 0 0\n#stoke-swap#   /dev/sdb2\tswap\tswap\tdefaults\n#/old none swap sw\n/srv/swap /mnt ext4 swap 0 0"
	got := withoutSwap(text)
	if got != want {
		t.Errorf("without swap:\n%s", got)
	}
	if again := withoutSwap(got); again != got {
		t.Errorf("twice:\n%s", again)
	}
	if back := withSwap(got, func(line string) bool { return slices.Contains(swapLines(text), line) }); back != text {
		t.Errorf("back:\n%s", back)
	}
}
