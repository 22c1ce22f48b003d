package blob

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go/logging"
	"golang.org/x/net/http/httpproxy"

	"github.com/stokehq/stoke/plan/state/backend"
)

// awsConfig finds out who asks and how. Nothing is dialled unless account ids
// are to be checked.
func awsConfig(ctx context.Context, c backend.Config, tries patience) (aws.Config, error) {
	load, err := awsLoading(c, tries)
	if err != nil {
		return aws.Config{}, err
	}
	found, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return aws.Config{}, err
	}
	if found.Region == "" {
		return aws.Config{}, errors.New("region is missing: write it into the backend block, or set AWS_REGION")
	}
	if err := assume(&found, c); err != nil {
		return aws.Config{}, err
	}
	return found, checkAccount(ctx, found, c)
}

func awsLoading(c backend.Config, tries patience) ([]func(*config.LoadOptions) error, error) {
	client, err := awsClient(c)
	if err != nil {
		return nil, err
	}
	mode := aws.RetryMode(c.String("retry_mode"))
	if mode != "" && mode != aws.RetryModeStandard && mode != aws.RetryModeAdaptive {
		return nil, fmt.Errorf("retry_mode must be standard or adaptive, and not %q", mode)
	}
	attempts := max(c.Int("max_retries", tries.attempts-1), 0) + 1
	standard := func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = attempts, tries.most
		o.Backoff = retry.NewExponentialJitterBackoff(tries.most)
	}
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client), config.WithAppID(c.Caller),
		config.WithLogger(logging.Nop{}), // it would write between the lines of others
		config.WithRetryer(func() aws.Retryer {
			if mode == aws.RetryModeAdaptive {
				return retry.NewAdaptiveMode(func(o *retry.AdaptiveModeOptions) {
					o.StandardOptions = append(o.StandardOptions, standard)
				})
			}
			return retry.NewStandard(standard)
		}),
	}
	add := func(given string, option config.LoadOptionsFunc) {
		if given != "" {
			load = append(load, option)
		}
	}
	add(c.String("region"), config.WithRegion(c.String("region")))
	add(c.String("profile"), config.WithSharedConfigProfile(c.String("profile")))
	add(strings.Join(c.Strings("shared_config_files"), ""), config.WithSharedConfigFiles(expandHome(c.Strings("shared_config_files"))))
	add(strings.Join(c.Strings("shared_credentials_files"), ""), config.WithSharedCredentialsFiles(expandHome(c.Strings("shared_credentials_files"))))
	add(c.String("ec2_metadata_service_endpoint"), config.WithEC2IMDSEndpoint(c.String("ec2_metadata_service_endpoint")))
	if c.Bool("skip_metadata_api_check", false) {
		load = append(load, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	if text := c.String("ec2_metadata_service_endpoint_mode"); text != "" {
		var m imds.EndpointModeState
		if err := m.SetFromString(text); err != nil {
			return nil, fmt.Errorf("ec2_metadata_service_endpoint_mode: %w", err)
		}
		load = append(load, config.WithEC2IMDSEndpointMode(m))
	}
	if c.Bool("use_dualstack_endpoint", false) {
		load = append(load, config.WithUseDualStackEndpoint(aws.DualStackEndpointStateEnabled))
	}
	if c.Bool("use_fips_endpoint", false) {
		load = append(load, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	id, secret := c.String("access_key"), c.String("secret_key")
	if (id == "") != (secret == "") {
		return nil, errors.New("access_key and secret_key belong together")
	}
	add(id, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(id, secret, c.String("token"))))
	return load, nil
}

// expandHome replaces ~ at the beginning of paths.
func expandHome(paths []string) []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return paths
	}
	for i, p := range paths {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			paths[i] = home + "/" + rest
		}
	}
	return paths
}

// awsClient is how requests travel.
func awsClient(c backend.Config) (*awshttp.BuildableClient, error) {
	proxy := httpproxy.FromEnvironment()
	if p := c.String("http_proxy"); p != "" {
		proxy.HTTPProxy = p
	}
	if p := c.String("https_proxy"); p != "" {
		proxy.HTTPSProxy = p
	}
	if p := c.String("no_proxy"); p != "" {
		proxy.NoProxy = p
	}
	choose := proxy.ProxyFunc()
	pool, err := certificates(c.String("custom_ca_bundle"))
	if err != nil {
		return nil, err
	}
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.Proxy = func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
		if t.TLSClientConfig == nil {
			t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		t.TLSClientConfig.InsecureSkipVerify = c.Bool("insecure", false) //nolint:gosec // asked for
		if pool != nil {
			t.TLSClientConfig.RootCAs = pool
		}
	}), nil
}

// assume changes who asks into a role.
func assume(found *aws.Config, c backend.Config) error {
	role, plain := c.Nested("assume_role")
	web, identity := c.Nested("assume_role_with_web_identity")
	if !plain && !identity {
		return nil
	}
	client := stsClient(*found, c)
	if identity {
		provider, err := webIdentity(client, web)
		if err != nil {
			return err
		}
		found.Credentials = aws.NewCredentialsCache(provider)
		client = stsClient(*found, c)
	}
	if plain {
		length, err := roleDuration(role)
		if err != nil {
			return err
		}
		found.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(client, role.String("role_arn"), func(o *stscreds.AssumeRoleOptions) {
			o.Duration, o.PolicyARNs = length, policies(role)
			o.RoleSessionName = role.String("session_name")
			o.ExternalID, o.Policy, o.SourceIdentity = configured(role, "external_id"), configured(role, "policy"),
				configured(role, "source_identity")
			o.TransitiveTagKeys = role.Strings("transitive_tag_keys")
			for k, v := range role.Map("tags") {
				o.Tags = append(o.Tags, types.Tag{Key: aws.String(k), Value: aws.String(v)})
			}
		}))
	}
	return nil
}

// token is a web identity's token that was given as it is.
type token string

// GetIdentityToken returns the token.
func (t token) GetIdentityToken() ([]byte, error) { return []byte(t), nil }

func webIdentity(client *sts.Client, web backend.Config) (aws.CredentialsProvider, error) {
	length, err := roleDuration(web)
	if err != nil {
		return nil, err
	}
	var source stscreds.IdentityTokenRetriever = token(web.String("web_identity_token"))
	if file := web.String("web_identity_token_file"); file != "" {
		source = stscreds.IdentityTokenFile(expandHome([]string{file})[0])
	} else if web.String("web_identity_token") == "" {
		return nil, errors.New("assume_role_with_web_identity needs web_identity_token or web_identity_token_file")
	}
	return stscreds.NewWebIdentityRoleProvider(client, web.String("role_arn"), source, func(o *stscreds.WebIdentityRoleOptions) {
		o.Duration, o.PolicyARNs = length, policies(web)
		o.RoleSessionName, o.Policy = web.String("session_name"), configured(web, "policy")
	}), nil
}

func configured(c backend.Config, name string) *string {
	if text := c.String(name); text != "" {
		return &text
	}
	return nil
}

func policies(c backend.Config) []types.PolicyDescriptorType {
	var list []types.PolicyDescriptorType
	for _, arn := range c.Strings("policy_arns") {
		list = append(list, types.PolicyDescriptorType{Arn: aws.String(arn)})
	}
	return list
}

func roleDuration(c backend.Config) (time.Duration, error) {
	text := c.String("duration")
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 15*time.Minute || d > 12*time.Hour {
		return 0, fmt.Errorf("duration must be from 15m to 12h, and not %q", text)
	}
	return d, nil
}

func stsClient(found aws.Config, c backend.Config) *sts.Client {
	return sts.NewFromConfig(found, func(o *sts.Options) {
		endpoint := c.String("sts_endpoint")
		if e, ok := c.Nested("endpoints"); ok && e.String("sts") != "" {
			endpoint = e.String("sts")
		}
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		if region := c.String("sts_region"); region != "" {
			o.Region = region
		}
	})
}

// checkAccount makes sure that the state is not kept in a wrong account.
func checkAccount(ctx context.Context, found aws.Config, c backend.Config) error {
	allowed, forbidden := c.Strings("allowed_account_ids"), c.Strings("forbidden_account_ids")
	if len(allowed)+len(forbidden) == 0 {
		return nil
	}
	who, err := stsClient(found, c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return fmt.Errorf("find the account's id: %w", err)
	}
	id := aws.ToString(who.Account)
	if len(allowed) > 0 && !slices.Contains(allowed, id) || slices.Contains(forbidden, id) {
		return fmt.Errorf("the account %s is not allowed by allowed_account_ids and forbidden_account_ids", id)
	}
	return nil
}
