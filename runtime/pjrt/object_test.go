package pjrt

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"github.com/stokehq/stoke/runtime/pjrt/pjrttest"
)

func TestObjectsAreClosedOnce(t *testing.T) {
	c := startClient(t, Options{})
	e := must(c.Compile("double:add ", nil))(t)
	b := must(c.Upload(F32, []int64{1}, floats(1)))(t)
	waited, called, dropped := must(b.Ready())(t), must(b.Ready())(t), must(b.Ready())(t)

	wants(t, c.Close(), "the client cannot be closed, as it has open: buffer × 1, event × 3, executable × 1")
	if err := waited.Wait(); err != nil {
		t.Error(err)
	}
	ready := make(chan error, 1)
	if err := called.OnReady(func(err error) { ready <- err }); err != nil {
		t.Error(err)
	}
	if err := <-ready; err != nil {
		t.Error(err)
	}
	closeAll(t, dropped, b, e)

	again := map[string]func() error{}
	for name, o := range map[string]*Event{"waited": waited, "called": called, "dropped": dropped} {
		again[name+", Wait"] = o.Wait
		again[name+", Close"] = o.Close
		again[name+", OnReady"] = func() error { return o.OnReady(func(error) { t.Error("called") }) }
	}
	again["buffer, Close"] = b.Close
	again["buffer, Wait"] = b.Wait
	again["buffer, Download"] = func() error { return b.Download(make([]byte, 4)) }
	again["buffer, Donated"] = func() error { _, err := b.Donated(); return err }
	again["executable, Close"] = e.Close
	again["executable, Serialize"] = func() error { _, err := e.Serialize(); return err }
	again["executable, Memory"] = func() error { _, err := e.Memory(); return err }
	again["executable, Execute"] = func() error { _, err := e.Execute(); return err }
	again["argument"] = func() error { _, err := e.Execute(b, b); return err }
	closeAll(t, c)
	again["client, Close"] = c.Close
	again["client, Compile"] = func() error { _, err := c.Compile("double:add ", nil); return err }
	again["client, Deserialize"] = func() error { _, err := c.Deserialize([]byte{1}); return err }
	again["client, Upload"] = func() error { _, err := c.Upload(F32, []int64{1}, floats(1)); return err }
	again["client, Memory"] = func() error { _, _, err := c.Memory(); return err }
	again["client, Kind"] = func() error { _, err := c.Kind(); return err }
	again["client, Platform"] = func() error { _, _, err := c.Platform(); return err }
	again["client, Pinned"] = func() error { _, err := c.Pinned(1); return err }
	for name, f := range again {
		if err := f(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: got %v, want %v", name, err, ErrClosed)
		}
	}
}

// An object that is closed under a call lives until that call returns.
func TestAnObjectClosedUnderACall(t *testing.T) {
	c := startClient(t, Options{})
	slow := must(c.Compile("double:slow ", nil))(t)
	a := must(c.Upload(F32, []int64{1}, floats(7)))(t)
	out := must(slow.Execute(a))(t)
	closeAll(t, a, slow) // the run goes on
	b := out[0]
	h := must(b.use())(t)
	closeAll(t, b)
	if err := b.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
	if _, err := b.use(); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
	wants(t, c.Close(), "buffer × 1")
	args := resultArgs{object: h} // the double ends the process if the buffer is freed
	if err := call(c.plugin, bufferIsDeleted, &args); err != nil {
		t.Error(err)
	}
	if err := b.release(); err != nil {
		t.Error(err)
	}
	closeAll(t, c)
}

// Each misuse is one that this package cannot be made to do: the double must see
// it, or the other tests show nothing.
var misuses = map[string]struct {
	want   string
	misuse func(*Client, *Buffer)
}{
	"twice": {"a buffer is destroyed twice", func(c *Client, b *Buffer) {
		call(c.plugin, bufferDestroy, &objectArgs{object: b.handle})
		call(c.plugin, bufferDestroy, &objectArgs{object: b.handle})
	}},
	"after": {"a buffer is used after it was destroyed", func(c *Client, b *Buffer) {
		call(c.plugin, bufferDestroy, &objectArgs{object: b.handle})
		call(c.plugin, bufferIsDeleted, &resultArgs{object: b.handle})
	}},
	"kind": {"a event is expected, and another object is given", func(c *Client, b *Buffer) {
		call(c.plugin, eventAwait, &objectArgs{object: b.handle})
	}},
	"nothing": {"no loaded executable is given", func(c *Client, b *Buffer) {
		call(c.plugin, loadedDestroy, &objectArgs{})
	}},
	"left": {"the client is destroyed, and 1 × buffer is left", func(c *Client, b *Buffer) {
		call(c.plugin, clientDestroy, &objectArgs{object: c.handle})
	}},
	"unknown": {"a function is called that stoke does not know", func(c *Client, b *Buffer) {
		call(c.plugin, 59, &objectArgs{object: b.handle})
	}},
	"beyond": {"a function is called that stoke does not know", func(c *Client, b *Buffer) {
		c.plugin.table = unsafe.Slice(unsafe.SliceData(c.plugin.table), 138)
		call(c.plugin, 137, &objectArgs{object: b.handle})
	}},
	"spare": {"PJRT_Buffer_Destroy_Args has 96 bytes, and byte 24 behind those of version 0.104 is not zero", func(c *Client, b *Buffer) {
		call(c.plugin, bufferDestroy, &resultArgs{object: b.handle, result: 1})
	}},
}

func TestTheDoubleSeesMisuse(t *testing.T) {
	if name := os.Getenv("STOKE_TEST_MISUSE"); name != "" {
		p, err := Open(os.Getenv("STOKE_TEST_DOUBLE"))
		if err != nil {
			t.Fatal(err)
		}
		c := must(p.NewClient(Options{}))(t)
		misuses[name].misuse(c, must(c.Upload(F32, []int64{1}, floats(1)))(t))
		return
	}
	path := pjrttest.Build(t)
	for name, test := range misuses {
		t.Run(name, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestTheDoubleSeesMisuse$")
			child.Env = append(os.Environ(), "STOKE_TEST_MISUSE="+name, "STOKE_TEST_DOUBLE="+path)
			out, err := child.CombinedOutput()
			if err == nil {
				t.Error("the process went on")
			}
			wants(t, errors.New(string(out)), "pjrt double: "+test.want)
		})
	}
}
