package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	hcl1 "github.com/hashicorp/hcl"
	"github.com/hashicorp/hcl/hcl/ast"
	"github.com/hashicorp/hcl/hcl/parser"
	"github.com/hashicorp/hcl/v2"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/stokehq/stoke/modules/syntax"
)

// cliConfig is what the CLI configuration says about registries: that file
// is Terraform's, so that a machine is set up once for both.
type cliConfig struct {
	tokens   map[svchost.Hostname]string
	helper   []string
	services map[svchost.Hostname]map[string]string
	unused   []string // arguments and blocks that are for plugins, with their files
}

// cliConfiguration reads the file that TF_CLI_CONFIG_FILE names, else
// ~/.terraformrc and *.tfrc in ~/.terraform.d, and the tokens that terraform
// login has stored. It reads them once: only the first call returns diagnostics.
func (s *session) cliConfiguration() (*cliConfig, hcl.Diagnostics) {
	if s.cli != nil {
		return s.cli, nil
	}
	c := &cliConfig{tokens: map[svchost.Hostname]string{}, services: map[svchost.Hostname]map[string]string{}}
	s.cli = c
	diags := s.readCLIFiles(c)
	if len(c.unused) > 0 {
		diags = append(diags, diagnostic(hcl.DiagWarning, "CLI configuration not used in full",
			"Stoke's providers are part of it, so that it passes over what is for provider plugins: %s. Nothing has to be done.", strings.Join(c.unused, ", ")))
	}
	return c, diags
}

func (s *session) readCLIFiles(c *cliConfig) hcl.Diagnostics {
	home := s.getenv("HOME")
	if home != "" {
		c.readTokens(filepath.Join(home, ".terraform.d", storedTokens))
	}
	for _, variable := range []string{"TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG"} { // the latter is its old name
		if name := s.getenv(variable); name != "" {
			return c.readFile(name, home, true)
		}
	}
	if home == "" {
		return nil
	}
	diags := c.readFile(filepath.Join(home, ".terraformrc"), home, false)
	more, err := filepath.Glob(filepath.Join(home, ".terraform.d", "*.tfrc*"))
	if err != nil {
		return diags // a home folder that is a bad pattern has none
	}
	for _, name := range more {
		if base := filepath.Base(name); base != storedTokens && (strings.HasSuffix(base, ".tfrc") || strings.HasSuffix(base, ".tfrc.json")) {
			diags = append(diags, c.readFile(name, home, false)...)
		}
	}
	return diags
}

// readFile adds what one file says. One that was not asked for need not
// be there.
func (c *cliConfig) readFile(name, home string, named bool) hcl.Diagnostics {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return nil
	case err == nil && !info.Mode().IsRegular():
		return nil // such as /dev/null
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return hcl.Diagnostics{diagnostic(hcl.DiagWarning, "CLI configuration cannot be read", "%s Stoke continues "+
			"without it.", asSentence(err.Error()))}
	}
	return c.read(name, text, home)
}

// storedTokens is the file that terraform login writes.
const storedTokens = "credentials.tfrc.json"

// cliFile is one file of the CLI configuration, as Terraform declares it. It is
// written in HCL 1, and read with the library that Terraform reads it with.
type cliFile struct {
	Providers          map[string]string
	Provisioners       map[string]string
	PluginCacheDir     string                            `hcl:"plugin_cache_dir"`
	Hosts              map[string]*cliHost               `hcl:"host"`
	Credentials        map[string]map[string]interface{} `hcl:"credentials"`
	CredentialsHelpers map[string]*cliHelper             `hcl:"credentials_helper"`
	DisableCheckpoint  bool                              `hcl:"disable_checkpoint"`
	DisableSignature   bool                              `hcl:"disable_checkpoint_signature"`
	MayBreakLockFile   bool                              `hcl:"plugin_cache_may_break_dependency_lock_file"`
}

type cliHost struct {
	Services map[string]interface{} `hcl:"services"`
}

type cliHelper struct {
	Args []string `hcl:"args"`
}

// forPlugins are the arguments and blocks that say where provider plugins come from.
var forPlugins = []string{
	"provider_installation", "plugin_cache_dir", "plugin_cache_may_break_dependency_lock_file", "providers", "provisioners",
}

// read takes out the settings for registries. Mistakes are warnings, as in
// Terraform. No message shows text of the file, which has tokens.
func (c *cliConfig) read(name string, text []byte, home string) (diags hcl.Diagnostics) {
	warn := func(format string, args ...any) {
		diags = append(diags, diagnostic(hcl.DiagWarning, "Invalid CLI configuration", "In %s, %s.", name, fmt.Sprintf(format, args...)))
	}
	file, parsed, err := parseCLIFile(text)
	if err != nil {
		warn("%s. Stoke goes on without it", err)
		return diags
	}
	c.noteUnused(name, parsed)
	for key, values := range file.Credentials {
		host, err := svchost.ForComparison(key)
		if err != nil {
			warn("%q cannot be the name of a host: these credentials are for none", key)
			continue
		}
		if token, ok := values["token"].(string); ok {
			c.tokens[host] = token
		}
	}
	for key, block := range file.Hosts {
		host, err := svchost.ForComparison(key)
		if err != nil {
			warn("%q cannot be the name of a host: this block is for none", key)
			continue
		}
		c.services[host] = map[string]string{}
		for service, value := range block.Services {
			if url, ok := value.(string); ok {
				c.services[host][service] = url
			}
		}
	}
	if len(file.CredentialsHelpers) > 1 {
		warn("there are several credentials_helper blocks, and there can be one: none is used")
		return diags
	}
	for program, block := range file.CredentialsHelpers {
		c.helper = append(helperProgram(program, home), block.Args...)
	}
	return diags
}

// parseCLIFile reads HCL 1, or JSON. Its errors say where they are, and quote nothing.
func parseCLIFile(text []byte) (*cliFile, *ast.File, error) {
	if err := syntax.CheckJSONDepth(text); err != nil {
		return nil, nil, err
	}
	var file cliFile
	parsed, err := hcl1.ParseBytes(text)
	if err == nil {
		err = hcl1.DecodeObject(&file, parsed)
	}
	if err == nil {
		return &file, parsed, nil
	}
	where := ""
	if at := (*parser.PosError)(nil); errors.As(err, &at) && at.Pos.Line > 0 {
		where = fmt.Sprintf(" at line %d, column %d", at.Pos.Line, at.Pos.Column)
	}
	return nil, nil, fmt.Errorf("there is a mistake%s: it is not what Terraform reads there, HCL 1 or JSON", where)
}

func (c *cliConfig) noteUnused(name string, file *ast.File) {
	list, ok := file.Node.(*ast.ObjectList)
	if !ok {
		return
	}
	for _, key := range forPlugins {
		if len(list.Filter(key).Items) > 0 {
			c.unused = append(c.unused, fmt.Sprintf("%s (in %s)", key, name))
		}
	}
}

// helperProgram finds the program terraform-credentials-NAME where Terraform
// looks for it.
func helperProgram(name, home string) []string {
	program := "terraform-credentials-" + filepath.Base(name)
	for _, dir := range []string{filepath.Join(home, ".terraform.d", "plugins"), filepath.Join(home, ".local", "share", "terraform", "plugins")} {
		if info, err := os.Stat(filepath.Join(dir, program)); err == nil && info.Mode().IsRegular() {
			return []string{filepath.Join(dir, program)}
		}
	}
	if found, err := exec.LookPath(program); err == nil {
		return []string{found}
	}
	return []string{program} // which fails by this name when it is asked
}

// readTokens reads what terraform login has stored. Nothing there, or
// something else, is no reason to stop.
func (c *cliConfig) readTokens(name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		return
	}
	var stored struct {
		Credentials map[string]struct {
			Token string `json:"token"`
		} `json:"credentials"`
	}
	if json.Unmarshal(text, &stored) != nil {
		return
	}
	for name, entry := range stored.Credentials {
		if host, err := svchost.ForComparison(name); err == nil {
			c.tokens[host] = entry.Token
		}
	}
}
