package blob

import (
	"context"
	"crypto/md5" //nolint:gosec // part of the protocol
	"encoding/base64"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/object"
)

// S3 is the backend "s3". Its arguments are Terraform's:
// https://developer.hashicorp.com/terraform/language/backend/s3
//
// It differs in one: locks are kept in the bucket (use_lockfile) unless the
// configuration says that they are not.
func S3() *backend.Kind {
	return &backend.Kind{Name: "s3", Open: withPatience(openS3), Arguments: s3Arguments()}
}

func s3Arguments() []backend.Argument {
	texts, flags := cty.Set(cty.String), cty.Bool
	arguments := []backend.Argument{
		{Name: "bucket", Type: cty.String, Required: true},
		{Name: "key", Type: cty.String, Required: true},
		{Name: "region", Type: cty.String, Environment: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}},
		{Name: "workspace_key_prefix", Type: cty.String},
		{Name: "use_lockfile", Type: flags},
		{Name: "encrypt", Type: flags},
		{Name: "acl", Type: cty.String},
		{Name: "kms_key_id", Type: cty.String},
		{Name: "sse_customer_key", Type: cty.String, Secret: true, Environment: []string{"AWS_SSE_CUSTOMER_KEY"}},
		{Name: "access_key", Type: cty.String, Secret: true},
		{Name: "secret_key", Type: cty.String, Secret: true},
		{Name: "token", Type: cty.String, Secret: true},
		{Name: "profile", Type: cty.String},
		{Name: "shared_config_files", Type: texts},
		{Name: "shared_credentials_files", Type: texts},
		{Name: "shared_credentials_file", Type: cty.String, Refused: "Terraform calls it deprecated. Write it as shared_credentials_files = [\"…\"]"},
		{Name: "endpoint", Type: cty.String, Environment: []string{"AWS_S3_ENDPOINT"}},
		{Name: "sts_endpoint", Type: cty.String, Environment: []string{"AWS_STS_ENDPOINT"}},
		{Name: "sts_region", Type: cty.String},
		{Name: "force_path_style", Type: flags},
		{Name: "use_path_style", Type: flags},
		{Name: "use_dualstack_endpoint", Type: flags},
		{Name: "use_fips_endpoint", Type: flags},
		{Name: "skip_s3_checksum", Type: flags},
		{Name: "skip_credentials_validation", Type: flags},
		{Name: "skip_region_validation", Type: flags},
		{Name: "skip_requesting_account_id", Type: flags},
		{Name: "skip_metadata_api_check", Type: flags},
		{Name: "ec2_metadata_service_endpoint", Type: cty.String},
		{Name: "ec2_metadata_service_endpoint_mode", Type: cty.String},
		{Name: "max_retries", Type: cty.Number},
		{Name: "retry_mode", Type: cty.String},
		{Name: "http_proxy", Type: cty.String},
		{Name: "https_proxy", Type: cty.String},
		{Name: "no_proxy", Type: cty.String},
		{Name: "insecure", Type: flags},
		{Name: "custom_ca_bundle", Type: cty.String},
		{Name: "allowed_account_ids", Type: texts},
		{Name: "forbidden_account_ids", Type: texts},
		{Name: "endpoints", Nested: endpointArguments()},
		{Name: "assume_role", Nested: roleArguments(false)},
		{Name: "assume_role_with_web_identity", Nested: roleArguments(true)},
	}
	for _, name := range []string{"dynamodb_table", "dynamodb_endpoint"} {
		arguments = append(arguments, backend.Argument{Name: name, Type: cty.String,
			Refused: "stoke keeps its lock in the bucket of the state and does not use DynamoDB. Remove the argument; to " +
				"work together with Terraform, set use_lockfile = true for both"})
	}
	return append(arguments, backend.Argument{Name: "iam_endpoint", Type: cty.String, Refused: "nothing is asked of IAM. Remove the argument"})
}

func endpointArguments() []backend.Argument {
	var list []backend.Argument
	for _, name := range []string{"s3", "sts", "sso", "iam", "dynamodb"} {
		list = append(list, backend.Argument{Name: name, Type: cty.String})
	}
	return list
}

func roleArguments(web bool) []backend.Argument {
	list := []backend.Argument{
		{Name: "role_arn", Type: cty.String, Required: true},
		{Name: "duration", Type: cty.String},
		{Name: "policy", Type: cty.String},
		{Name: "policy_arns", Type: cty.Set(cty.String)},
		{Name: "session_name", Type: cty.String},
	}
	if web {
		return append(list,
			backend.Argument{Name: "web_identity_token", Type: cty.String},
			backend.Argument{Name: "web_identity_token_file", Type: cty.String})
	}
	return append(list,
		backend.Argument{Name: "external_id", Type: cty.String},
		backend.Argument{Name: "source_identity", Type: cty.String},
		backend.Argument{Name: "tags", Type: cty.Map(cty.String)},
		backend.Argument{Name: "transitive_tag_keys", Type: cty.Set(cty.String)})
}

func openS3(ctx context.Context, c backend.Config, tries patience) (backend.Backend, error) {
	key := c.String("key")
	if strings.HasPrefix(key, "/") || strings.HasSuffix(key, "/") || key == "" {
		return nil, errors.New("key must neither begin nor end with a slash")
	}
	prefix := c.String("workspace_key_prefix")
	if prefix == "" {
		prefix = "env:"
	}
	if strings.HasPrefix(prefix, "/") || strings.HasSuffix(prefix, "/") {
		return nil, errors.New("workspace_key_prefix must neither begin nor end with a slash")
	}
	b := &s3Bucket{name: c.String("bucket"), acl: c.String("acl"), kms: c.String("kms_key_id"), encrypt: c.Bool("encrypt", false), attempts: tries.attempts}
	if err := b.customerKey(c.String("sse_customer_key")); err != nil {
		return nil, err
	}
	if e, ok := c.Nested("endpoints"); ok && e.String("sso") != "" {
		return nil, errors.New("endpoints.sso cannot be set here: set AWS_ENDPOINT_URL_SSO in the environment")
	}
	config, err := awsConfig(ctx, c, tries)
	if err != nil {
		return nil, err
	}
	b.client = s3.NewFromConfig(config, s3Options(c))
	suffix := ".tflock"
	if !c.Bool("use_lockfile", true) {
		suffix = ""
	}
	return &Backend{bucket: b, names: s3Names(key, prefix, suffix), timing: object.DefaultTiming, close: func() error { return nil }}, nil
}

// s3Names are Terraform's: the default workspace's snapshot has the key, and
// others a folder below the prefix.
func s3Names(key, prefix, lockSuffix string) names {
	n := names{prefix: prefix + "/"}
	n.snapshot = func(workspace string) string {
		if workspace == backend.DefaultWorkspace {
			return key
		}
		return prefix + "/" + workspace + "/" + key
	}
	n.lock = func(workspace string) string {
		if lockSuffix == "" {
			return ""
		}
		return n.snapshot(workspace) + lockSuffix
	}
	n.workspace = func(name string) string {
		rest, ok := strings.CutPrefix(name, prefix+"/")
		workspace, file, below := strings.Cut(rest, "/")
		if !ok || !below || file != key {
			return ""
		}
		return workspace
	}
	return n
}

// customerKey takes a key in base64 with which the service encrypts and which
// it forgets.
func (b *s3Bucket) customerKey(text string) error {
	if text == "" {
		return nil
	}
	if b.kms != "" {
		return errors.New("kms_key_id and sse_customer_key exclude each other")
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != 32 {
		return errors.New("sse_customer_key must be 32 bytes in base64")
	}
	sum := md5.Sum(key) //nolint:gosec // part of the protocol
	b.customer = &customerKey{key: text, sum: base64.StdEncoding.EncodeToString(sum[:])}
	return nil
}

// s3Options are what the client does differently from other AWS clients.
func s3Options(c backend.Config) func(*s3.Options) {
	return func(o *s3.Options) {
		o.UsePathStyle = c.Bool("use_path_style", c.Bool("force_path_style", false))
		endpoint := c.String("endpoint")
		if e, ok := c.Nested("endpoints"); ok && e.String("s3") != "" {
			endpoint = e.String("s3")
		}
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		if c.Bool("skip_s3_checksum", false) {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
		o.DisableLogOutputChecksumValidationSkipped = true
	}
}
