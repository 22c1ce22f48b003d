package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// The environment variables of the configuration.
const (
	pluginSetting    = "STOKE_XLA_PLUGIN"
	librariesSetting = "STOKE_CUDA_LIBRARIES"
	ptxasSetting     = "STOKE_PTXAS"
	libdeviceSetting = "STOKE_LIBDEVICE"
	cacheSetting     = "STOKE_XLA_CACHE"
	fractionSetting  = "STOKE_GPU_MEMORY_FRACTION"
)

// Config names files of XLA and CUDA. The zero value finds all of them.
type Config struct {
	Plugin         string   // the file xla_cuda_plugin.so
	Libraries      []string // folders of libraries, searched before all others
	Ptxas          string   // the file
	Libdevice      string   // the file libdevice.10.bc
	Cache          string   // the folder of compiled programs; a folder of the user's where it is empty
	MemoryFraction float32  // the part of the GPU's memory that the process may use; 0 is XLA's default
}

// FromEnvironment returns the configuration that environment variables name:
// STOKE_XLA_PLUGIN, STOKE_CUDA_LIBRARIES (folders, as in PATH), STOKE_PTXAS,
// STOKE_LIBDEVICE, STOKE_XLA_CACHE, STOKE_GPU_MEMORY_FRACTION.
func FromEnvironment() (Config, error) {
	c := Config{
		Plugin: os.Getenv(pluginSetting), Ptxas: os.Getenv(ptxasSetting), Libdevice: os.Getenv(libdeviceSetting),
		Cache: os.Getenv(cacheSetting),
	}
	for _, dir := range filepath.SplitList(os.Getenv(librariesSetting)) {
		if dir != "" {
			c.Libraries = append(c.Libraries, dir)
		}
	}
	if text := os.Getenv(fractionSetting); text != "" {
		f, err := strconv.ParseFloat(text, 32)
		if err != nil || !(f > 0 && f <= 1) {
			return Config{}, fmt.Errorf("%s is %q: it must be a number above 0 and at most 1", fractionSetting, text)
		}
		c.MemoryFraction = float32(f)
	}
	return c, nil
}
