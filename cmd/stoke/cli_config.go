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

	"github.com/hashicorp/hcl/v2"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/syntax"
)

// cliConfig is what the CLI configuration says about registries: that file
// is Terraform's, so that a machine is set up once for both.
type cliConfig struct {
	tokens   map[svchost.Hostname]string
	helper   []string
	services map[svchost.Hostname]map[string]string
}

// cliConfiguration reads the file that TF_CLI_CONFIG_FILE names, else
// ~/.terraformrc and *.tfrc in ~/.terraform.d, and the tokens that terraform
// login has stored.
func (s *session) cliConfiguration() (*cliConfig, hcl.Diagnostics) {
	c := &cliConfig{tokens: map[svchost.Hostname]string{}, services: map[svchost.Hostname]map[string]string{}}
	home := s.getenv("HOME")
	if home != "" {
		c.readTokens(filepath.Join(home, ".terraform.d", storedTokens))
	}
	if name := s.getenv("TF_CLI_CONFIG_FILE"); name != "" {
		return c, s.readCLIFile(c, name, true)
	}
	if home == "" {
		return c, nil
	}
	diags := s.readCLIFile(c, filepath.Join(home, ".terraformrc"), false)
	more, err := filepath.Glob(filepath.Join(home, ".terraform.d", "*.tfrc*"))
	if err != nil {
		return c, diags // a home folder that is a bad pattern has none
	}
	for _, name := range more {
		if base := filepath.Base(name); base != storedTokens && (strings.HasSuffix(base, ".tfrc") || strings.HasSuffix(base, ".tfrc.json")) {
			diags = append(diags, s.readCLIFile(c, name, false)...)
		}
	}
	return c, diags
}

// readCLIFile adds what one file says. One that was not asked for need not
// be there.
func (s *session) readCLIFile(c *cliConfig, name string, named bool) hcl.Diagnostics {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return nil
	case err == nil && !info.Mode().IsRegular():
		return nil // such as /dev/null
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return hcl.Diagnostics{diagnostic(hcl.DiagWarning, "CLI configuration cannot be read", "%s Stoke goes on without it.", asSentence(err.Error()))}
	}
	body, diags := syntax.Parse(name, text)
	if diags.HasErrors() {
		return diags
	}
	return append(diags, c.read(body, s.getenv("HOME"))...)
}

// storedTokens is the file that terraform login writes.
const storedTokens = "credentials.tfrc.json"

var cliSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "credentials", LabelNames: []string{"host"}}, {Type: "credentials_helper", LabelNames: []string{"name"}}, {Type: "host", LabelNames: []string{"name"}},
}}

// read takes out what is about registries; the rest is about plugins.
func (c *cliConfig) read(body hcl.Body, home string) hcl.Diagnostics {
	content, _, diags := body.PartialContent(cliSchema)
	for _, block := range content.Blocks {
		attrs, more := block.Body.JustAttributes()
		diags = append(diags, more...)
		value := func(name string) cty.Value {
			if attr := attrs[name]; attr != nil {
				v, more := attr.Expr.Value(nil)
				diags = append(diags, more...)
				return v
			}
			return cty.NilVal
		}
		if block.Type == "credentials_helper" {
			c.helper = append(helperProgram(block.Labels[0], home), stringsOf(value("args"))...)
			continue
		}
		host, err := svchost.ForComparison(block.Labels[0])
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid host", Subject: block.DefRange.Ptr(),
				Detail: fmt.Sprintf("%q cannot be the name of a host.", block.Labels[0])})
			continue
		}
		if block.Type == "credentials" {
			if list := stringsOf(value("token")); len(list) == 1 {
				c.tokens[host] = list[0]
			}
			continue
		}
		services := map[string]string{}
		if v := value("services"); v != cty.NilVal && v.IsWhollyKnown() && !v.IsNull() && v.CanIterateElements() && (v.Type().IsObjectType() || v.Type().IsMapType()) {
			for name, service := range v.AsValueMap() {
				if list := stringsOf(service); len(list) == 1 {
					services[name] = list[0]
				}
			}
		}
		c.services[host] = services
	}
	return diags
}

// stringsOf are the strings in a value: itself, or those of a list.
func stringsOf(v cty.Value) []string {
	switch {
	case v == cty.NilVal || v.IsNull() || !v.IsWhollyKnown():
		return nil
	case v.Type() == cty.String:
		return []string{v.AsString()}
	case !v.Type().IsTupleType() && !v.Type().IsListType():
		return nil
	}
	var list []string
	for _, element := range v.AsValueSlice() {
		list = append(list, stringsOf(element)...)
	}
	return list
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
