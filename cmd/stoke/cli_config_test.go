package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"
)

// cliConfigs are CLI configurations: which of them Terraform takes, and what
// stoke finds in them.
var cliConfigs = []struct {
	name, text string
	ext        string // of the file's name
	wrong      bool
	tokens     string // HOST=TOKEN …
	services   string // HOST/SERVICE=URL …
	helper     string
	unused     string
}{
	{name: "empty"},
	{name: "token", text: "credentials \"example.com\" {\n  token = \"t0ken\"\n}\n", tokens: "example.com=t0ken"},
	{name: "dev_overrides", text: `provider_installation {
  dev_overrides {
    "hashicorp/null" = "/tmp/x"
  }
  direct {}
}
`, unused: "provider_installation"},
	{name: "mirrors", text: `provider_installation {
  filesystem_mirror {
    path    = "/usr/share/terraform/providers"
    include = ["example.com/*/*"]
  }
  network_mirror {
    url = "https://terraform.example.com/providers/"
  }
  direct {
    exclude = ["example.com/*/*"]
  }
}
credentials "example.com" { token = "t0ken" }
`, tokens: "example.com=t0ken", unused: "provider_installation"},
	{name: "providers", text: "providers {\n  \"google\" = \"/tmp/terraform-provider-google\"\n  aws = \"/tmp/a\"\n}\n", unused: "providers"},
	{name: "provisioners", text: "provisioners {\n  x = \"/tmp/x\"\n}\n", unused: "provisioners"},
	{name: "quoted argument", text: "credentials \"example.com\" {\n  \"token\" = \"t0ken\"\n}\n", tokens: "example.com=t0ken"},
	{name: "bare label", text: "credentials example {\n  token = \"t0ken\"\n}\n", tokens: "example=t0ken"},
	{name: "one line", text: `plugin_cache_may_break_dependency_lock_file = true disable_checkpoint = true credentials "example.com" { token = "t0ken" }` + "\n",
		tokens: "example.com=t0ken", unused: "plugin_cache_may_break_dependency_lock_file"},
	{name: "blocks on one line", text: `credentials "a.example.com" { token = "a" } credentials "b.example.com" { token = "b" }`,
		tokens: "a.example.com=a b.example.com=b"},
	{name: "comma", text: "credentials \"example.com\" {\n  token = \"t0ken\", other = 1\n}\n", tokens: "example.com=t0ken"},
	{name: "object", text: "credentials \"example.com\" = {\n  token = \"t0ken\"\n}\n", wrong: true},
	{name: "nested", text: "credentials {\n  \"example.com\" {\n    token = \"t0ken\"\n  }\n}\n", tokens: "example.com=t0ken"},
	{name: "semicolon in comment", text: "# a;b\n// c\n/* d */\ndisable_checkpoint = true\n"},
	{name: "template", text: "credentials \"example.com\" {\n  token = \"${t0ken}\"\n}\n", tokens: "example.com=${t0ken}"},
	{name: "heredoc", text: "credentials \"example.com\" {\n  token = <<EOT\nt0ken\nEOT\n}\n", tokens: "example.com=t0ken\n"},
	{name: "number", text: "credentials \"example.com\" {\n  token = 12\n}\n"},
	{name: "unknown", text: "something = [1, \"a\"]\nelse { a = 1 }\n"},
	{name: "host", text: "host \"Example.com\" {\n  services = {\n    \"modules.v1\" = \"https://modules.example.com/v1/\"\n    \"x.v1\" = { a = 1 }\n  }\n}\n",
		services: "example.com/modules.v1=https://modules.example.com/v1/"},
	{name: "host with blocks", text: "host \"example.com\" {\n  services {\n    modules.v1 = \"https://example.com/v1/\"\n  }\n}\n",
		services: "example.com/modules.v1=https://example.com/v1/"},
	{name: "helper", text: "credentials_helper \"x\" {\n  args = [\"a\", \"b\"]\n}\n", helper: "terraform-credentials-x a b"},
	{name: "helper without arguments", text: "credentials_helper \"x\" {}\n", helper: "terraform-credentials-x"},
	{name: "JSON", ext: ".json", text: `{"credentials": {"example.com": {"token": "t0ken"}}, "plugin_cache_dir": "", "host": {"example.com": {"services": {"modules.v1": "https://m/"}}}}`,
		tokens: "example.com=t0ken", services: "example.com/modules.v1=https://m/", unused: "plugin_cache_dir"},
	{name: "JSON in a file without a name for it", text: ` {"disable_checkpoint": true, "provider_installation": {"direct": {}}}`, unused: "provider_installation"},
	{name: "windows", text: "\r\ncredentials \"example.com\" {\r\n  token = \"t0ken\"\r\n}\r\n", tokens: "example.com=t0ken"},
	{name: "two helpers", text: "credentials_helper \"x\" {}\ncredentials_helper \"y\" {}\n", wrong: true},
	{name: "wrong host", text: "host \"example com\" {}\n", wrong: true},
	{name: "wrong credentials", text: "credentials \"..\" { token = \"t0ken\" }\n", wrong: true},
	{name: "not closed", text: "credentials \"example.com\" {\n  token = \"t0ken\"\n", wrong: true},
	{name: "no value", text: "credentials \"example.com\" {\n  token = \n}\n", wrong: true},
	{name: "expression", text: "credentials \"example.com\" {\n  token = \"t0ken\" and more\n}\n", wrong: true},
	{name: "function", text: "credentials \"example.com\" {\n  token = upper(\"t0ken\")\n}\n", wrong: true},
	{name: "wrong kind", text: "disable_checkpoint = \"t0ken\"\n", wrong: true},
	{name: "too deep", text: "a = " + strings.Repeat("[", 100_000), wrong: true},
}

func TestCLIConfiguration(t *testing.T) {
	for _, c := range cliConfigs {
		name := filepath.Join(t.TempDir(), "rc"+c.ext)
		write(t, name, []byte(c.text))
		s := newSession(stage{environ: []string{"TF_CLI_CONFIG_FILE=" + name}})
		got, diags := s.cliConfiguration()
		if diags.HasErrors() || strings.Contains(diags.Error(), "Invalid CLI configuration") != c.wrong || strings.Contains(diags.Error(), "t0ken") {
			t.Errorf("%s: %v", c.name, diags)
		}
		hosts := func(h svchost.Hostname) string { return h.String() }
		var tokens, services, unused []string
		for host, token := range got.tokens {
			tokens = append(tokens, hosts(host)+"="+token)
		}
		for host, of := range got.services {
			for _, service := range slices.Sorted(maps.Keys(of)) {
				services = append(services, hosts(host)+"/"+service+"="+of[service])
			}
		}
		for _, at := range got.unused {
			unused = append(unused, strings.TrimSuffix(at, " (in "+name+")"))
		}
		slices.Sort(tokens)
		for _, pair := range [][2]string{
			{strings.Join(tokens, " "), c.tokens}, {strings.Join(services, " "), c.services},
			{strings.Join(got.helper, " "), c.helper}, {strings.Join(unused, " "), c.unused},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %q, not %q", c.name, pair[0], pair[1])
			}
		}
		if (len(diags) > 0) != (c.unused != "" || c.wrong) {
			t.Errorf("%s: %v", c.name, diags)
		}
		if _, again := s.cliConfiguration(); len(again) > 0 {
			t.Errorf("%s: told twice: %v", c.name, again)
		}
	}
}

// TestCLIConfigurationAsTerraform holds the table against a real Terraform.
func TestCLIConfigurationAsTerraform(t *testing.T) {
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	for _, c := range cliConfigs {
		if len(c.text) > 10_000 {
			continue // Terraform takes minutes for it
		}
		dir := t.TempDir()
		name := filepath.Join(dir, "rc"+c.ext)
		write(t, name, []byte(c.text))
		cmd := exec.Command(terraform, "init")
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "CHECKPOINT_DISABLE=1", "PATH=" + os.Getenv("PATH"), "TF_CLI_CONFIG_FILE=" + name}
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "problems with the CLI configuration") != c.wrong {
			t.Errorf("%s: %v\n%s", c.name, err, begin(string(out)))
		}
	}
}
