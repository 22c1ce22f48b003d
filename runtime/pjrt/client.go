package pjrt

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// Client is a process's use of one device.
type Client struct {
	plugin *Plugin
	handle handle
	device handle

	mu     sync.Mutex
	closed bool
	uses   int
	open   map[*object]struct{}
	pinned map[*byte]region
}

// NewClient starts a client. It drives the first device that it may use.
func (p *Plugin) NewClient(o Options) (*Client, error) {
	var args clientCreateArgs
	err := o.pass(func(first unsafe.Pointer, count uintptr) error {
		args.options, args.optionCount = first, count
		return call(p, clientCreate, &args)
	})
	if err != nil {
		return nil, fmt.Errorf("start a PJRT client: %w", err)
	}
	c := &Client{plugin: p, handle: args.client, open: make(map[*object]struct{}), pinned: make(map[*byte]region)}
	list := textArgs{object: c.handle}
	err = call(p, clientAddressableDevices, &list)
	if err == nil && list.length == 0 {
		err = errors.New("the plugin found no device")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("list the devices of the PJRT client: %w", err), c.Close())
	}
	c.device = *(*handle)(pointer(list.data))
	p.mu.Lock()
	p.clients[c] = struct{}{}
	p.mu.Unlock()
	return c, nil
}

// Close ends the client and frees its pinned memory. While executables, buffers
// or events are open, or calls are being made, Close reports them and the client
// stays open.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("the client is %w", ErrClosed)
	}
	if left := c.listOpen(); left != "" {
		return fmt.Errorf("the client cannot be closed, as it has open: %s", left)
	}
	var errs []error
	for _, r := range c.pinned {
		errs = append(errs, c.free(r))
	}
	clear(c.pinned)
	c.closed = true
	c.plugin.mu.Lock()
	delete(c.plugin.clients, c)
	c.plugin.mu.Unlock()
	errs = append(errs, call(c.plugin, clientDestroy, &objectArgs{object: c.handle}))
	return errors.Join(errs...)
}

// listOpen lists what keeps the client from closing.
func (c *Client) listOpen() string {
	count := make(map[string]int)
	for o := range c.open {
		count[o.kind]++
	}
	for _, r := range c.pinned {
		if !r.ours {
			count["pinned region"]++
		}
	}
	if c.uses > 0 {
		count["call"] = c.uses
	}
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprintf("%s × %d", kind, count[kind]))
	}
	return strings.Join(list, ", ")
}

// use makes a call that uses the client itself.
func (c *Client) use(f func() error) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return fmt.Errorf("the client is %w", ErrClosed)
	}
	c.uses++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.uses--
		c.mu.Unlock()
	}()
	return f()
}

// keep adds an object to the open objects. The client must be in use, or one
// of its objects, so that it cannot be closed before.
func (c *Client) keep(o *object) *object {
	o.client = c
	c.mu.Lock()
	c.open[o] = struct{}{}
	c.mu.Unlock()
	return o
}

func (c *Client) forget(o *object) {
	c.mu.Lock()
	delete(c.open, o)
	c.mu.Unlock()
}

// Platform returns the platform's name and version, as the plugin reports them.
func (c *Client) Platform() (name, version string, err error) {
	err = c.use(func() error {
		if name, err = c.plugin.textOf(clientPlatformName, c.handle); err != nil {
			return err
		}
		version, err = c.plugin.textOf(clientPlatformVersion, c.handle)
		return err
	})
	return name, version, err
}

// Kind returns the model of the device.
func (c *Client) Kind() (kind string, err error) {
	err = c.use(func() error {
		args := resultArgs{object: c.device}
		if err := call(c.plugin, deviceGetDescription, &args); err != nil {
			return err
		}
		kind, err = c.plugin.textOf(descriptionKind, args.result)
		return err
	})
	return kind, err
}

// Memory returns how many bytes of the device's memory the client uses, and how
// many it may use: 0 where the plugin reports no limit.
func (c *Client) Memory() (used, limit int64, err error) {
	args := deviceMemoryArgs{device: c.device}
	err = c.use(func() error { return call(c.plugin, deviceMemoryStats, &args) })
	if args.limit.set {
		limit = args.limit.value
	}
	return args.inUse, limit, err
}
