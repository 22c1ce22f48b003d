package kubernetes

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/storetest"
)

// noise is a text that takes at least size bytes when it is compressed.
func noise(seed uint64, size int) []byte {
	raw := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(raw) // never fails
	return fmt.Appendf(nil, `{"version":4,"noise":"%s"}`, hex.EncodeToString(raw))
}

// asTerraform puts a state together as Terraform does: all Secrets with the
// state's labels, one after the other.
func asTerraform(t *testing.T, c *storetest.Cluster) string {
	t.Helper()
	const name = "default/tfstate-default-x"
	first := c.Secret(name)
	if first == nil || first.Labels["tfstate"] != "true" || first.Labels["app.kubernetes.io/managed-by"] != "terraform" || first.Annotations["encoding"] != "gzip" {
		t.Fatalf("Terraform does not find %v", first)
	}
	all := first.Data["tfstate"]
	labelled := 1
	for n := 1; ; n++ {
		part := c.Secret(fmt.Sprintf("%s-part-%d", name, n))
		if part == nil {
			break
		}
		labelled++
		all = append(all, part.Data["tfstate"]...)
	}
	for _, key := range c.Secrets() {
		if c.Secret(key).Labels["tfstate"] == "true" {
			labelled--
		}
	}
	if labelled != 0 {
		t.Fatalf("Terraform finds Secrets that belong to no state: %v", c.Secrets())
	}
	r, err := gzip.NewReader(bytes.NewReader(all))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLarge writes states of one and of many Secrets over each other, and
// lets every request go wrong: what is there is always the one or the other,
// and after the next write that works nothing else is left.
func TestLarge(t *testing.T) {
	const limit = 4 << 10
	sizes := []int{100, limit - 500, limit + 1, 3 * limit}
	for i, before := range sizes {
		for j, after := range sizes {
			t.Run(fmt.Sprintf("%d to %d", before, after), func(t *testing.T) {
				t.Parallel()
				overwrite(t, limit, noise(uint64(i), before), noise(uint64(10+j), after))
			})
		}
	}
}

// smaller opens the default state as a process does for which Secrets are
// smaller than they are.
func smaller(t *testing.T, limit int, arguments map[string]cty.Value) state.Store {
	t.Helper()
	b, err := openWith(t, arguments, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.largest = limit
	s, err := b.Store(backend.DefaultWorkspace)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func overwrite(t *testing.T, limit int, before, after []byte) {
	faults := []storetest.Fault{storetest.CutBefore, storetest.CutAfter, storetest.FailAfter}
	for from := 0; ; from++ {
		fault := faults[from%len(faults)]
		cluster := &storetest.Cluster{}
		s := &storetest.Saboteur{Server: cluster}
		srv := httptest.NewServer(s)
		arguments := map[string]cty.Value{"host": text(srv.URL), "secret_suffix": text("x")}
		ctx, first := t.Context(), smaller(t, limit, arguments)
		version, err := first.WriteSnapshot(ctx, before, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := asTerraform(t, cluster); got != string(before) {
			t.Fatalf("Terraform reads %d bytes", len(got))
		}
		s.Arm(fault, from, -1)
		_, err = first.WriteSnapshot(ctx, after, version)
		requests := s.Disarm()
		next := smaller(t, limit, arguments)
		got, version, err2 := next.ReadSnapshot(ctx)
		if err2 != nil || !bytes.Equal(got, before) && !bytes.Equal(got, after) || err == nil && !bytes.Equal(got, after) {
			t.Fatalf("after request %d of %d failed (%s, %v): %d bytes, %v", from, requests, fault, err, len(got), err2)
		}
		if _, err := next.WriteSnapshot(ctx, after, version); err != nil {
			t.Fatal(err)
		}
		if got := asTerraform(t, cluster); got != string(after) {
			t.Fatalf("Terraform reads %d bytes", len(got))
		}
		want := 1 + 2*parts(cluster) // and as much in stoke's own rest
		if n := len(cluster.Secrets()); n != want {
			t.Fatalf("%d Secrets are left, want %d: %v", n, want, cluster.Secrets())
		}
		srv.Close()
		if requests <= from {
			return
		}
	}
}

// parts counts Terraform's.
func parts(c *storetest.Cluster) int {
	n := 0
	for _, key := range c.Secrets() {
		if strings.Contains(key, "-part-") {
			n++
		}
	}
	return n
}

// TestTerraformsOwn reads what Terraform has written over a large state of
// stoke's: nothing of the rest counts any more.
func TestTerraformsOwn(t *testing.T) {
	cluster := &storetest.Cluster{}
	arguments := map[string]cty.Value{"secret_suffix": text("x"), "host": text(serveAt(t, cluster))}
	ctx, s := t.Context(), process(t, arguments)
	if _, err := s.WriteSnapshot(ctx, noise(1, 3<<20), ""); err != nil {
		t.Fatal(err)
	}
	content, err := packed(noise(2, 2<<20), "") // two parts fewer, and no rest
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; len(content) > 0; n++ {
		name := "default/tfstate-default-x"
		if n > 0 {
			name = fmt.Sprintf("%s-part-%d", name, n)
		}
		o := cluster.Secret(name)
		size := min(len(content), 1<<20)
		o.Data["tfstate"], content = content[:size], content[size:]
		cluster.Replace(o)
	}
	got, version, err := process(t, arguments).ReadSnapshot(ctx)
	if err != nil || string(got) != string(noise(2, 2<<20)) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	o := cluster.Secret("default/tfstate-default-x")
	o.Data["tfstate"] = o.Data["tfstate"][:100]
	cluster.Replace(o)
	if _, _, err := process(t, arguments).ReadSnapshot(ctx); err == nil || !strings.Contains(err.Error(), "unpack") {
		t.Errorf("a torn state: %v", err)
	}
	var conflict *state.ConflictError
	if _, err := process(t, arguments).WriteSnapshot(ctx, []byte("{}"), version); !errors.As(err, &conflict) {
		t.Errorf("over a state that was replaced: %v", err)
	}
}
