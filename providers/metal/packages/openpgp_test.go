package packages

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// The keys were made and exported by gpg 2.2; so were the fingerprints.
const (
	printEd25519 = "1AC97A8DD41C4518406185D4386935B89C313B82"
	printRSA     = "DE5CA34BBBCCD24F5C034E39BB85E6A978E6D2AB"
	printExpired = "8531FB607967E4BFD0BDD388EFDEDD5424BE4829"
)

func TestReadKeyring(t *testing.T) {
	both := testdata(t, "key-ed25519.asc") + "\n" + testdata(t, "key-rsa.asc")
	for _, c := range []struct {
		name, content string
		prints        []string
		expires       string
	}{
		{"armored", testdata(t, "key-ed25519.asc"), []string{printEd25519}, ""},
		{"binary", testdata(t, "key-ed25519.gpg"), []string{printEd25519}, ""},
		{"RSA", testdata(t, "key-rsa.asc"), []string{printRSA}, "2036-11-18"},
		{"expired", testdata(t, "key-expired.asc"), []string{printExpired}, "2020-12-31"},
		{"two", both, []string{printEd25519, printRSA}, ""},
		{"carriage returns", strings.ReplaceAll(both, "\n", "\r\n"), []string{printEd25519, printRSA}, ""},
	} {
		binary, keys, err := readKeyring([]byte(c.content))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, k := range keys {
			got = append(got, k.Fingerprint)
		}
		if prints(got) != prints(c.prints) {
			t.Errorf("%s: %v, want %v", c.name, got, c.prints)
		}
		if e := keys[0].Expires; c.expires == "" != e.IsZero() || c.expires != "" && e.Format(time.DateOnly) != c.expires {
			t.Errorf("%s: expires %v, want %q", c.name, e, c.expires)
		}
		if again, _, err := readKeyring(binary); err != nil || !bytes.Equal(again, binary) {
			t.Errorf("%s: what would be installed cannot be read back: %v", c.name, err)
		}
	}
	if binary, _, _ := readKeyring([]byte(testdata(t, "key-ed25519.asc"))); string(binary) != testdata(t, "key-ed25519.gpg") {
		t.Error("the armored key is not the binary one")
	}
}

func TestReadKeyringIsStrict(t *testing.T) {
	good := testdata(t, "key-ed25519.gpg")
	for name, content := range map[string]string{
		"empty": "", "a web page": "<html>404</html>", "cut off": good[:40], "garbage after it": good + "x", "armor cut off": testdata(t, "key-rsa.asc")[:400],
		"a message": "-----BEGIN PGP MESSAGE-----\n\nabcd\n-----END PGP MESSAGE-----\n", "a literal packet": good + "\xcb\x01x", "a secret key": "\xc5" + good[1:], "too large": strings.Repeat("\x00", maxKeyring+1),
		"a signature": "\xc2\x01\x04",
	} {
		if _, keys, err := readKeyring([]byte(content)); err == nil {
			t.Errorf("%s: read as %v", name, keys)
		}
	}
}

func FuzzReadKeyring(f *testing.F) {
	for _, name := range []string{"key-ed25519.asc", "key-ed25519.gpg", "key-rsa.asc", "key-expired.asc"} {
		f.Add([]byte(testdata(f, name)))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, keys, err := readKeyring(content); err == nil && len(keys) == 0 {
			t.Error("no key, and no error")
		}
	})
}

func TestCheckKey(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		key, fingerprints, says string
	}{
		{"key-rsa.asc", printRSA, ""},
		{"key-rsa.asc", "de5c a34b bbcc d24f 5c03  4e39 bb85 e6a9 78e6 d2ab", ""},
		{"key-rsa.asc", printRSA + "," + printEd25519, ""}, // one of two that are declared, as while a key is being replaced
		{"key-rsa.asc", printEd25519, "is another one: declared is " + printEd25519 + ", it is " + printRSA},
		{"key-expired.asc", printExpired, "expired on 2020-12-31: declared is " + printExpired},
	} {
		r := Repository{Key: Key{Inline: "x"}, Fingerprints: strings.Split(c.fingerprints, ",")}
		_, err := r.check("test", []byte(testdata(t, c.key)), now)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s against %s: %v", c.key, c.fingerprints, err)
		}
	}
	r := Repository{Fingerprints: []string{printRSA}}
	later := now.AddDate(20, 0, 0)
	if got := r.trusted([]byte(testdata(t, "key-rsa.asc")), later); got != printRSA+" expired on 2036-11-18" {
		t.Errorf("on the machine, expired: %q", got)
	}
}
