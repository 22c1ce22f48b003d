package modules

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/source"
)

// Module is one module as it is written: declarations and the modules that
// it calls. It is the same for all instances of a module call.
type Module struct {
	Dir  string   // folder of its files, as it was reached from the working directory
	Path []string // names of the calls that lead here; empty for the root

	Settings  Settings
	Variables map[string]*Variable
	Locals    map[string]*Local
	Outputs   map[string]*Output
	Resources map[ResourceName]*Resource
	Calls     map[string]*Call
	Checks    map[string]*CheckBlock
	Providers map[string]*ProviderConfig // by "name" or "name.alias"

	Refactorings
}

// ResourceName names a resource within its module.
type ResourceName struct {
	Mode address.Mode
	Type string
	Name string
}

// Settings is what terraform {} (and, in *.stoke.hcl, stoke {}) says.
type Settings struct {
	RequiredVersion   []VersionConstraint
	RequiredProviders map[string]RequiredProvider // by local name
	Backend           *Backend                    // nil: the local backend
}

// VersionConstraint is one required_version, with its place.
type VersionConstraint struct {
	Text  string
	Range hcl.Range
}

// RequiredProvider is the source of the provider with a local name.
type RequiredProvider struct {
	Source  string // as written, e.g. "stokehq/train"
	Version string // constraint as written, may be empty
	Aliases []string
	Range   hcl.Range
}

// Backend is a backend block.
type Backend struct {
	Type  string
	Body  hcl.Body
	Range hcl.Range
}

// Variable is an input of a module.
type Variable struct {
	Name        string
	Type        cty.Type // with optional attributes removed; cty.DynamicPseudoType when not given
	Constraint  cty.Type // the type with its optional attributes, for conversion
	Defaults    *typeexpr.Defaults
	Default     cty.Value // cty.NilVal when required; already converted
	Description string
	Sensitive   bool
	Ephemeral   bool
	Nullable    bool
	Validations []*Check
	Range       hcl.Range

	// verbatim says that text from a flag or the environment is the value
	// itself and no expression: the type is primitive, or none is given.
	verbatim bool
}

// Required reports whether the variable has no default.
func (v *Variable) Required() bool { return v.Default == cty.NilVal }

// Local is one local value.
type Local struct {
	Name  string
	Expr  hcl.Expression
	Range hcl.Range
}

// Output is a value that a module hands out.
type Output struct {
	Name          string
	Value         hcl.Expression
	Description   string
	Sensitive     bool
	Ephemeral     bool
	DependsOn     []hcl.Traversal
	Preconditions []*Check
	Range         hcl.Range
}

// Resource is a resource or data block.
type Resource struct {
	ResourceName
	Body        hcl.Body       // what the provider's schema describes, meta-arguments removed
	Count       hcl.Expression // nil when absent
	ForEach     hcl.Expression // nil when absent
	Provider    ProviderRef    // local name and alias
	DependsOn   []hcl.Traversal
	Lifecycle   Lifecycle
	Check       string    // name of the check block that alone can see it; mostly ""
	Range       hcl.Range // the block's header
	TypeRange   hcl.Range // the type label
	ModuleOwner *Module
}

// ProviderRef names a provider configuration of a module: provider = a.b.
type ProviderRef struct {
	Name  string // local name; by default the type's prefix
	Alias string
	Range hcl.Range
}

// Key is the key in Module.Providers.
func (p ProviderRef) Key() string {
	if p.Alias == "" {
		return p.Name
	}
	return p.Name + "." + p.Alias
}

// Call is a module block.
type Call struct {
	Name      string
	Source    string         // as it is written
	Address   source.Address // what Source means
	Version   string         // constraint as written, may be empty
	Installed string         // version of the child, where it has one
	Args      hcl.Attributes // the child's variables
	Count     hcl.Expression
	ForEach   hcl.Expression
	DependsOn []hcl.Traversal
	Providers map[string]ProviderRef // child's key → ours
	Module    *Module                // the child, loaded
	Range     hcl.Range

	SourceRange hcl.Range // of the argument's value; of the call where that holds a secret
}

// Library reports whether the call is of a module of the library.
func (c *Call) Library() bool { return c.Address.Kind == source.Library }

// ProviderConfig is a provider block.
type ProviderConfig struct {
	Name  string
	Alias string
	Body  hcl.Body
	Empty bool // without arguments
	Range hcl.Range
}
