package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	goversion "github.com/hashicorp/go-version"

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
	return copyInto(filepath.Join(into, filepath.FromSlash(sub)), to)
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
	return source.Within(into, joined(sub, a.Subdir))
}

// copyInto copies what is in a folder into another one.
func copyInto(from, to string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
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
