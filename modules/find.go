package modules

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/library"
	"github.com/stokehq/stoke/modules/source"
)

// Finder finds the folders of modules from elsewhere: repositories, archives,
// registries and the library.
type Finder interface {
	// Find answers in the order of the calls, which come from modules that
	// are equally far from the root.
	Find(calls []CallRequest) []Location
}

// CallRequest is a call whose module is looked for.
type CallRequest struct {
	Key  string // names of the calls that lead there, joined by dots
	Call *Call
}

// Location is where a module is, or why it is not.
type Location struct {
	Dir     string // of the module
	Package string // folder that Dir is in and that its own calls cannot leave
	Version string // where it has one
	Problem *hcl.Diagnostic
}

// manifestInPlan is the name of the manifest among the files of a plan,
// wherever it was read from.
const manifestInPlan = ".terraform/modules/" + source.ManifestName

// installed finds modules by the manifest that init has written.
type installed struct {
	src      Source
	files    *Files
	manifest source.Manifest
	problem  error
	read     bool
}

func (i *installed) Find(calls []CallRequest) []Location {
	if len(calls) > 0 && !i.read {
		i.read = true
		i.manifest, i.problem = i.open()
	}
	found := make([]Location, len(calls))
	for n, called := range calls {
		if i.problem != nil {
			found[n].Problem = failure(&called.Call.SourceRange, "Manifest of modules cannot be read", "%s. Run \"stoke "+
				"init\" to write it again.", i.problem)
			continue
		}
		found[n] = Installed(i.manifest, called)
	}
	return found
}

func (i *installed) open() (source.Manifest, error) {
	text, err := i.src.Read(manifestPath(i.src))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s", manifestPath(i.src), cause(err))
	}
	i.files.addConfiguration(filepath.FromSlash(manifestInPlan), text)
	return source.DecodeManifest(text)
}

func manifestPath(src Source) string {
	if d, ok := src.(disk); ok && d.data != "" {
		return filepath.Join(d.data, "modules", source.ManifestName)
	}
	return filepath.FromSlash(manifestInPlan)
}

// Installed looks a call up in a manifest, and says what has changed since
// its module was installed.
func Installed(m source.Manifest, called CallRequest) Location {
	call := called.Call
	record, ok := m[called.Key]
	const advice = "Run \"stoke init\" to install what the configuration needs."
	problem := func(summary, format string, args ...any) Location {
		return Location{Problem: failure(&call.SourceRange, summary, format+" "+advice, args...)}
	}
	switch {
	case !ok:
		return problem("Module not installed", "Module %q has the source %s, and is not installed yet.", call.Name, call.Address.Redacted())
	case record.Source != call.Address.Text:
		return problem("Module source has changed", "Module %q has the source %s, and the installed one has the source %s.",
			call.Name, call.Address.Redacted(), redacted(record.Source))
	case call.Address.Kind == source.Published && !accepts(call.Version, record.Version):
		return problem("Module version requirements have changed", "Module %q requires version %s, and version %s is installed.",
			call.Name, call.Version, record.Version)
	case call.Address.Kind == source.Library && record.Version != library.Version(call.Address.Name()):
		return problem("Module of another stoke", "Module %q is part of stoke, and the installed one belongs to "+
			"another version of it.", call.Name)
	}
	return Location{Dir: record.Dir, Package: packageOf(record.Dir, called.Key), Version: record.Version}
}

// redacted is an address from a manifest, without its password.
func redacted(text string) string {
	if a, err := source.Parse(text); err == nil {
		return a.Redacted()
	}
	return "elsewhere"
}

// accepts reports whether a version is one that a constraint allows.
func accepts(constraint, version string) bool {
	v, err := goversion.NewVersion(version)
	if err != nil {
		return false
	}
	if strings.TrimSpace(constraint) == "" {
		return true
	}
	c, err := goversion.NewConstraint(constraint)
	return err == nil && c.Check(v)
}

// packageOf is the folder that was installed as a whole: it is called as the
// key, in the folder of all modules.
func packageOf(dir, key string) string {
	slashed := "/" + filepath.ToSlash(dir) + "/"
	whole := "/modules/" + key
	if at := strings.Index(slashed, whole+"/"); at >= 0 {
		return filepath.FromSlash(strings.TrimPrefix(slashed[:at+len(whole)], "/"))
	}
	return dir
}
