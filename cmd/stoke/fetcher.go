package main

import (
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/source"
)

// fetcher gets modules from elsewhere, with this person's credentials.
func (s *session) fetcher() (*source.Fetcher, hcl.Diagnostics) {
	config, diags := s.cliConfiguration()
	client := source.NewHTTPClient()
	asks := *client
	asks.Timeout = time.Minute // a registry's answers are short
	if seconds, ok := s.count("TF_REGISTRY_CLIENT_TIMEOUT"); ok && seconds > 0 {
		asks.Timeout = time.Duration(seconds) * time.Second
	}
	registry := &source.Registry{
		HTTP: &asks, Services: config.services,
		Credentials: &source.Credentials{Environ: s.environ, Tokens: config.tokens, Helper: config.helper},
	}
	if again, ok := s.count("TF_REGISTRY_DISCOVERY_RETRY"); ok {
		registry.Tries = again + 1
	}
	return &source.Fetcher{HTTP: client, Environ: s.environ, Registry: registry}, diags
}

// count reads a number from the environment. A value that is not a number is
// ignored, as in Terraform.
func (s *session) count(name string) (int, bool) {
	n, err := strconv.ParseUint(s.getenv(name), 10, 16)
	return int(n), err == nil
}
