package cuda

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/pjrt"
)

// Client is XLA on one GPU. It has the methods of pjrt.Client; its Compile
// keeps programs between processes.
type Client struct {
	*pjrt.Client
	gpu    GPU
	plugin string // its versions
	driver string
	cudnn  int
	flags  string // XLA_FLAGS of the user's
	kept   cache
	log    *slog.Logger
}

// Open starts XLA on the GPU with an index, and checks a product, an exponential
// and a convolution. The GPU's memory is taken when it is needed. A failure that
// people can mend is a Fault.
func Open(ctx context.Context, c Config, index int, log *slog.Logger) (*Client, error) {
	return open(ctx, thisMachine(), c, index, log)
}

func open(ctx context.Context, m machine, c Config, index int, log *slog.Logger) (*Client, error) {
	if err := c.check(m); err != nil {
		return nil, err
	}
	gpus, err := m.listGPUs()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(gpus, func(g GPU) bool { return g.Index == index })
	if at < 0 {
		return nil, &Fault{Kind: NoGPU, Summary: fmt.Sprintf("There is no GPU %d", index), Advice: "There are: " + listIndices(gpus) + "."}
	}
	files, err := c.find(m)
	if err != nil {
		return nil, err
	}
	client := &Client{gpu: gpus[at], driver: m.driverVersion(), flags: userFlags(), log: log}
	dir := c.Cache
	if user, err := os.UserCacheDir(); dir == "" && err == nil {
		dir = filepath.Join(user, "stoke", "xla")
	}
	if dir == "" {
		return nil, fmt.Errorf("compiled programs have no folder: set %s or HOME", cacheSetting)
	}
	client.kept = cache{dir, cacheLimit}
	toolkit, err := makeToolkit(dir, files)
	if err != nil {
		return nil, err
	}
	all, err := m.allGPUs()
	if err != nil {
		return nil, err
	}
	if err := setEnvironment(toolkit, client.gpu, len(all) == 1); err != nil {
		return nil, err
	}
	if err := client.start(ctx, files, c.MemoryFraction); err != nil {
		return nil, err
	}
	return client, nil
}

func listIndices(gpus []GPU) string {
	var list []string
	for _, g := range gpus {
		list = append(list, fmt.Sprintf("%d (%s)", g.Index, g.Name))
	}
	return strings.Join(list, ", ")
}

// start loads the libraries and the plugin, starts the client and checks it.
func (c *Client) start(ctx context.Context, files Files, fraction float32) error {
	begin := time.Now()
	for _, path := range files.Libraries {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := preload(path)
		if err != nil && !isNeeded(path) {
			c.log.Warn("a library of CUDA cannot be loaded", "error", err)
			continue
		}
		if err != nil {
			return &Fault{Kind: NoLibrary, Summary: "A library of CUDA cannot be loaded",
				Advice: "It may be damaged, or need a library of another version. " + librariesSetting +
					" names folders to search first.", Cause: err}
		}
		if strings.HasPrefix(filepath.Base(path), "libcudnn.so") {
			if c.cudnn, err = cudnnVersion(path); err != nil {
				return err
			}
		}
	}
	plugin, err := pjrt.Open(files.Plugin)
	if err != nil {
		advice := "Install the Python package jax-cuda13-pjrt again, or name another plugin by " + pluginSetting + "."
		switch {
		case errors.Is(err, pjrt.ErrTooOld):
			advice = "Install a newer version of the Python package jax-cuda13-pjrt, such as 0.11.2."
		case errors.Is(err, pjrt.ErrTooNew):
			advice = "Install an older version of the Python package jax-cuda13-pjrt, such as 0.11.2, or a newer stoke."
		}
		return &Fault{Kind: BadPlugin, Summary: "XLA's plugin for CUDA cannot be used", Advice: advice, Cause: err}
	}
	loaded := time.Since(begin)
	// CUDA_VISIBLE_DEVICES leaves one device, or there is one.
	c.Client, err = plugin.NewClient(pjrt.Options{MemoryFraction: fraction, VisibleDevices: []int64{0}})
	if err != nil {
		return &Fault{Kind: BadGPU, Summary: "XLA does not start on the GPU",
			Advice: "Check with nvidia-smi that the GPU works and has free memory. XLA's own messages are on standard error.", Cause: err}
	}
	if c.plugin, err = describePlugin(plugin, c.Client, files.Plugin); err == nil && c.gpu.UUID == "" {
		c.gpu.Name, err = c.Kind() // a sandbox does not tell the model, which the class needs
	}
	if err == nil {
		err = c.check(ctx)
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	c.log.Info("XLA started", "gpu", c.gpu.Name, "index", c.gpu.Index, "uuid", c.gpu.UUID, "driver", c.driver, "plugin", c.plugin,
		"cudnn", c.cudnn, "file", files.Plugin, "loading", loaded, "all", time.Since(begin))
	return nil
}

// check runs the trials.
func (c *Client) check(ctx context.Context) error {
	for _, t := range trials() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.run(c); err != nil {
			return &Fault{Kind: BadGPU, Summary: "The GPU fails a check at the start",
				Advice: fmt.Sprintf("One %s on %s was compared with Go's result. Libraries of another version of CUDA, "+
					"or a broken GPU, are the usual reasons.", t.name, c.gpu.Name), Cause: err}
		}
	}
	return nil
}

// describePlugin returns all that tells two builds of a plugin apart: versions
// that it reports, and the sum that the linker wrote into the file, or its size.
func describePlugin(p *pjrt.Plugin, client *pjrt.Client, path string) (string, error) {
	attributes, err := p.Attributes()
	if err != nil {
		return "", err
	}
	_, platform, err := client.Platform()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	major, minor := p.Version()
	words := []string{fmt.Sprintf("PJRT %d.%d", major, minor)}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if strings.HasSuffix(name, "_version") {
			words = append(words, fmt.Sprintf("%s %v", name, attributes[name]))
		}
	}
	words = append(words, strings.Join(strings.Fields(platform), " "))
	if id := buildID(path); id != "" {
		return strings.Join(append(words, "build "+id), ", "), nil
	}
	return strings.Join(append(words, fmt.Sprintf("%d bytes", info.Size())), ", "), nil
}

// buildID returns the linker's sum of a file in hexadecimal digits, or "".
func buildID(path string) string {
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	section := file.Section(".note.gnu.build-id")
	if section == nil {
		return ""
	}
	note, err := section.Data()
	if err != nil || len(note) < 20 {
		return ""
	}
	return fmt.Sprintf("%x", note[16:]) // behind three sizes and the name GNU
}

// GPU returns the GPU that the client uses.
func (c *Client) GPU() GPU { return c.gpu }

// Class names what two clients share that compute the same bits from the same
// program: the model of the GPU, the versions of plugin and cuDNN, and XLA_FLAGS.
// Flags of Compile are the caller's to add.
func (c *Client) Class() string {
	class := fmt.Sprintf("%s; %s; cuDNN %d.%d.%d", c.gpu.Name, c.plugin, c.cudnn/10000, c.cudnn/100%100, c.cudnn%100)
	if c.flags != "" {
		class += "; XLA_FLAGS " + c.flags
	}
	return class
}

// Compile compiles StableHLO, or loads what an earlier process compiled of the
// same text with the same flags. Flags are XLA's debug options by name: string,
// bool, int, int64 or float64. Faults of the cache are only logged.
func (c *Client) Compile(text string, flags map[string]any) (*pjrt.Executable, error) {
	name := key(c.Class()+"; driver "+c.driver, text, flags)
	if program := c.load(name); program != nil {
		return program, nil
	}
	begin := time.Now()
	program, err := c.Client.Compile(text, flags)
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	data, err := program.Serialize()
	if err == nil {
		err = c.kept.write(name, data)
	}
	if err != nil {
		c.log.Warn("a compiled program is not kept", "error", err)
	}
	c.log.Debug("program compiled", "took", took, "bytes", len(data))
	return program, nil
}

// load returns a kept program, or nil.
func (c *Client) load(name string) *pjrt.Executable {
	data, err := c.kept.read(name)
	if err != nil {
		c.log.Warn("a compiled program cannot be read", "error", err)
	}
	if data == nil {
		return nil
	}
	program, err := c.Deserialize(data)
	if err != nil {
		c.log.Warn("XLA refuses a kept program, which is compiled again", "error", err)
		return nil
	}
	return program
}
