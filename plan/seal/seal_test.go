package seal

import (
	"bytes"
	"testing"
)

func box(t *testing.T, secret []byte, salt, purpose string) *Box {
	t.Helper()
	b, err := New(secret, []byte(salt), purpose)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBox(t *testing.T) {
	secret := Random()
	b := box(t, secret, "salt", "test")
	text, context := []byte("hunter2 and the rest"), []byte("record 7")
	sealed := b.Seal([]byte("before"), text, context)
	if !bytes.HasPrefix(sealed, []byte("before")) || bytes.Contains(sealed, []byte("hunter2")) {
		t.Fatalf("sealed as %q", sealed)
	}
	sealed = sealed[len("before"):]
	if len(sealed) != len(text)+Overhead {
		t.Errorf("%d bytes longer, want %d", len(sealed)-len(text), Overhead)
	}
	if got, err := box(t, secret, "salt", "test").Open(sealed, context); err != nil || !bytes.Equal(got, text) {
		t.Errorf("opened as %q, %v", got, err)
	}
	if bytes.Equal(b.Seal(nil, text, context), b.Seal(nil, text, context)) {
		t.Error("a nonce was used twice")
	}
	for name, other := range map[string]*Box{
		"another secret": box(t, Random(), "salt", "test"), "another salt": box(t, secret, "pepper", "test"),
		"another purpose": box(t, secret, "salt", "fun"),
	} {
		if _, err := other.Open(sealed, context); err != ErrSealed {
			t.Errorf("%s: %v", name, err)
		}
		if other.Signed(text, b.Sign(text)) {
			t.Errorf("%s signs the same", name)
		}
	}
	if _, err := b.Open(sealed, []byte("record 8")); err != ErrSealed {
		t.Errorf("in another place: %v", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := b.Open(changed, context); err != ErrSealed {
			t.Fatalf("with byte %d changed: %v", i, err)
		}
		if _, err := b.Open(sealed[:i], context); err != ErrSealed {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if !b.Signed(text, b.Sign(text)) || b.Signed(text[1:], b.Sign(text)) {
		t.Error("signatures do not tell texts apart")
	}
	if _, err := New(secret[1:], nil, ""); err == nil {
		t.Error("a short secret is taken")
	}
}

func TestStretch(t *testing.T) {
	salt := Salt()
	a, err := Stretch([]byte("correct horse"), salt)
	if err != nil || len(a) != SecretLen {
		t.Fatal(a, err)
	}
	if b, _ := Stretch([]byte("correct horse"), salt); !bytes.Equal(a, b) {
		t.Error("the same text and salt make another secret")
	}
	if b, _ := Stretch([]byte("correct horse"), Salt()); bytes.Equal(a, b) {
		t.Error("the salt does not matter")
	}
	d, err := Digest([]byte("1234"), salt)
	if err != nil {
		t.Fatal(err)
	}
	same, _ := Digest([]byte("1234"), salt)
	other, _ := Digest([]byte("1235"), salt)
	if !SameDigest(d, same) || SameDigest(d, other) {
		t.Error("digests do not tell texts apart")
	}
}
