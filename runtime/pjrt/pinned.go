package pjrt

import (
	"errors"
	"fmt"
	"unsafe"
)

// region is memory that the device knows.
type region struct {
	data []byte
	ours bool // mapped by Pinned
}

// Pinned returns n bytes of memory, page-aligned and zero, that the device copies
// from and to directly: several times as fast as Go's memory. The memory is
// freed by FreePinned or with the client; a use afterwards ends the process.
func (c *Client) Pinned(n int) ([]byte, error) {
	if n <= 0 {
		return nil, fmt.Errorf("pinned memory of %d bytes", n)
	}
	data, err := mapMemory(n)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	if err := c.pin(region{data, true}); err != nil {
		return nil, errors.Join(err, unmapMemory(data))
	}
	return data, nil
}

// FreePinned frees memory of Pinned before the client ends. Events of copies that use
// the memory must be over.
func (c *Client) FreePinned(data []byte) error { return c.unpin(data, true) }

// Pin makes memory known to the device. It must stay where it is until Unpin: a
// mapped file, and not Go's heap.
func (c *Client) Pin(data []byte) error { return c.pin(region{data, false}) }

// Unpin undoes Pin. Events of copies that use the memory must be over.
func (c *Client) Unpin(data []byte) error { return c.unpin(data, false) }

func (c *Client) pin(r region) error {
	if len(r.data) == 0 {
		return errors.New("no memory is given to pin")
	}
	return c.use(func() error {
		c.mu.Lock()
		_, pinned := c.pinned[&r.data[0]]
		if !pinned {
			c.pinned[&r.data[0]] = r
		}
		c.mu.Unlock()
		if pinned {
			return errors.New("the memory is pinned already")
		}
		err := call(c.plugin, clientDmaMap, &dmaArgs{client: c.handle, data: first(r.data), length: uintptr(len(r.data))})
		if err != nil {
			c.mu.Lock()
			delete(c.pinned, &r.data[0])
			c.mu.Unlock()
			return fmt.Errorf("pin %d bytes: %w", len(r.data), err)
		}
		return nil
	})
}

func (c *Client) unpin(data []byte, ours bool) error {
	if len(data) == 0 {
		return errors.New("no memory is given to unpin")
	}
	return c.use(func() error {
		r, err := c.takePinned(&data[0], ours)
		if err != nil {
			return err
		}
		return c.free(r)
	})
}

// takePinned removes a region from the list, unless a copy uses it.
func (c *Client) takePinned(at *byte, ours bool) (region, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.pinned[at]
	if !ok || r.ours != ours {
		return region{}, errors.New("the memory is not pinned")
	}
	for o := range c.open {
		if overlaps(o.memory, r.data) {
			return region{}, errors.New("a copy uses the memory: its event is open")
		}
	}
	delete(c.pinned, at)
	return r, nil
}

func overlaps(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	start, other := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return start < other+uintptr(len(b)) && other < start+uintptr(len(a))
}

// free makes the device forget a region, and unmaps it where Pinned mapped it.
func (c *Client) free(r region) error {
	if err := call(c.plugin, clientDmaUnmap, &dmaArgs{client: c.handle, data: first(r.data)}); err != nil {
		return fmt.Errorf("unpin %d bytes: %w", len(r.data), err) // it stays mapped, as the device may still write to it
	}
	if r.ours {
		return unmapMemory(r.data)
	}
	return nil
}
