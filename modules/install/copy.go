package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	goversion "github.com/hashicorp/go-version"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/source"
)

// CopyModule copies the module at an address into a folder, which must have
// none of its files. The newest version is taken of what a registry has.
func CopyModule(ctx context.Context, fetcher *source.Fetcher, a source.Address, dataDir, to string) error {
	if err := os.MkdirAll(filepath.Join(dataDir, "modules"), 0o755); err != nil {
		return err
	}
	around, err := os.MkdirTemp(filepath.Join(dataDir, "modules"), partial)
	if err != nil {
		return err
	}
	defer os.RemoveAll(around) //nolint:errcheck // the next installation sweeps
	into := filepath.Join(around, "package")
	sub := a.Subdir
	switch a.Kind {
	case source.Library:
		err = writeLibrary(a.Name(), into)
	case source.Published:
		sub, err = newest(ctx, fetcher, a, into)
	default:
		sub, err = fetcher.Fetch(ctx, a, into)
	}
	if err != nil {
		return errors.New(reason(err))
	}
	from, err := filepath.EvalSymlinks(filepath.Join(into, filepath.FromSlash(sub)))
	if err != nil {
		return err
	}
	if name, text := leaves(from); name != "" {
		advice := "copy a folder that holds both"
		if a.Subdir != "" {
			advice = fmt.Sprintf("copy the whole package from %s and work in its folder %s with -chdir", packageText(a), a.Subdir)
		}
		return fmt.Errorf("it calls module %q from %q, which is not among the copied files; %s", name, text, advice)
	}
	return copyInto(from, to)
}

// leaves finds a call of a folder outside of the module in dir, by it or by
// a module within it.
func leaves(dir string) (name, text string) {
	root, _, _ := modules.Load(modules.OnDisk(), dir) // mistakes are found where it is copied to
	var search func(m *modules.Module) bool
	search = func(m *modules.Module) bool {
		for _, key := range slices.Sorted(maps.Keys(m.Calls)) {
			call := m.Calls[key]
			if call.Address.Kind != source.Folder {
				continue
			}
			inside, err := filepath.Rel(dir, filepath.Join(m.Dir, filepath.FromSlash(call.Address.Text)))
			if err != nil || !filepath.IsLocal(inside) {
				name, text = call.Name, call.Address.Text
				return true
			}
			if call.Module != nil && search(call.Module) {
				return true
			}
		}
		return false
	}
	search(root)
	return name, text
}

func newest(ctx context.Context, fetcher *source.Fetcher, a source.Address, into string) (string, error) {
	texts, err := fetcher.Registry.Versions(ctx, a)
	if err != nil {
		return "", err
	}
	var best *goversion.Version
	for _, text := range texts {
		if v, err := goversion.NewVersion(text); err == nil && v.Prerelease() == "" && (best == nil || v.GreaterThan(best)) {
			best = v
		}
	}
	if best == nil {
		return "", errors.New("the registry has no version of it")
	}
	location, err := fetcher.Registry.Location(ctx, a, best.String())
	if err != nil {
		return "", err
	}
	sub, err := fetcher.Fetch(ctx, location, into)
	if err != nil {
		return "", err
	}
	return source.FindSubfolder(into, joined(sub, a.Subdir))
}

// copyInto copies what is in a folder into another one.
func copyInto(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if name == ".terraform" || name == ".git" || name == "terraform.tfstate" {
			continue // what belongs to the folder that it was
		}
		if err := source.Copy(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}
