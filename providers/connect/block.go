package connect

import (
	"context"
	"maps"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// SSHBlock is the block "ssh" of a provider: how to log in on machines. It is
// the same for all providers, and nothing of it is ever stored. ReadSSH reads
// it.
//
//	ssh {
//	  user             = "ops"
//	  private_key_file = "~/.ssh/id_ed25519"
//
//	  credentials = {
//	    jump = { user = "jump", agent = true, sudo = false }
//	  }
//	  bastion {
//	    address    = "bastion.example.com"
//	    host_key   = "ssh-ed25519 AAAA…"
//	    credential = "jump"
//	  }
//	}
func SSHBlock() schema.Block {
	attributes := credentialBlockAttributes()
	maps.Copy(attributes, map[string]schema.Attribute{
		"dial_timeout": schema.StringAttribute{
			Optional:    true,
			Description: `How long connecting to one machine may take, login included, such as "30s". Default: 20s.`,
		},
		"keepalive_interval": schema.StringAttribute{
			Optional:    true,
			Description: "Interval of requests to a silent machine; after three questions without an answer the connection is lost. Default: 15s.",
		},
		"retry_timeout": schema.StringAttribute{
			Optional:    true,
			Description: "For how long a machine that cannot be reached is tried again. Default: 30s; 0s tries once.",
		},
		"config_file": schema.StringAttribute{
			Optional: true,
			Description: `Path of an OpenSSH client configuration, such as "~/.ssh/config", for omitted arguments: HostName, Port, User, IdentityFile, ` +
				"CertificateFile, IdentityAgent, ProxyJump. Left out: none is read.",
		},
		"credentials": schema.MapNestedAttribute{
			Optional: true,
			Description: "Credentials by name, for machines that the block itself does not fit. Each is complete: it " +
				"takes no arguments from the block.",
			NestedObject: schema.NestedAttributeObject{Attributes: credentialBlockAttributes()},
		},
	})
	return schema.SingleNestedBlock{
		Description: "How to log in on machines. Nothing of it is ever stored.",
		Attributes:  attributes,
		Blocks:      map[string]schema.Block{"bastion": bastionBlock()},
		Validators:  []validator.Object{blockValidator{}},
	}
}

func credentialBlockAttributes() map[string]schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Description: description}
	}
	secret := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Sensitive: true, Description: description}
	}
	return map[string]schema.Attribute{
		"user":             text("User to log in as, unless the machine names one."),
		"private_key_file": text(`Path of a private key, such as "~/.ssh/id_ed25519".`),
		"private_key":      secret("A private key itself, in OpenSSH's format or PEM, instead of a file."),
		"passphrase":       secret("Passphrase of the private key."),
		"certificate":      text("OpenSSH certificate of the private key: the line of its -cert.pub file."),
		"certificate_file": text("Path of such a file, instead."),
		"agent": schema.BoolAttribute{Optional: true, Description: "Whether to ask the agent at SSH_AUTH_SOCK for keys. " +
			"Default: when neither a key nor a password is given and there is an agent."},
		"password":      secret("Password to log in with, where keys are not taken."),
		"sudo":          schema.BoolAttribute{Optional: true, Description: "Whether to become root by sudo. Default: unless the user is root."},
		"sudo_password": secret("Password that sudo asks for; left out where it asks for none."),
	}
}

// sshModel is the block as the framework reads it.
type sshModel struct {
	credentialModel
	DialTimeout       types.String `tfsdk:"dial_timeout"`
	KeepaliveInterval types.String `tfsdk:"keepalive_interval"`
	RetryTimeout      types.String `tfsdk:"retry_timeout"`
	ConfigFile        types.String `tfsdk:"config_file"`
	Credentials       types.Map    `tfsdk:"credentials"`
	Bastions          types.List   `tfsdk:"bastion"`
}

type credentialModel struct {
	User            types.String `tfsdk:"user"`
	PrivateKeyFile  types.String `tfsdk:"private_key_file"`
	PrivateKey      types.String `tfsdk:"private_key"`
	Passphrase      types.String `tfsdk:"passphrase"`
	Certificate     types.String `tfsdk:"certificate"`
	CertificateFile types.String `tfsdk:"certificate_file"`
	Agent           types.Bool   `tfsdk:"agent"`
	Password        types.String `tfsdk:"password"`
	Sudo            types.Bool   `tfsdk:"sudo"`
	SudoPassword    types.String `tfsdk:"sudo_password"`
}

// blockValidator says at once what is wrong with the block, whether or not a
// machine needs it.
type blockValidator struct{}

func (blockValidator) Description(context.Context) string { return "The credentials can be used." }

func (v blockValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (blockValidator) ValidateObject(ctx context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	_, diags := readSSH(ctx, req.Path, req.ConfigValue, os.Getenv, false)
	resp.Diagnostics.Append(diags...)
}

// blockPath is where the block is in a provider's configuration.
func blockPath() path.Path { return path.Root("ssh") }
