package connect

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Argument is the optional argument of a resource that works in a cluster. It
// is validated as soon as it is known, and replaces the resource when it leads
// to another cluster.
func Argument(description string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Optional:      true,
		Description:   description,
		Attributes:    connectionAttributes(kind{}),
		Validators:    []validator.Object{objectValidator{}},
		PlanModifiers: []planmodifier.Object{ReplaceIfOtherCluster()},
	}
}

// Result is the computed attribute of a resource that makes a cluster. While
// the cluster is updated, its connection keeps the prior value.
//
// The attribute can't be called "connection": the framework reserves that name
// at the root of resources, as Terraform does for provisioners.
func Result(description string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Computed:      true,
		Description:   description,
		Attributes:    connectionAttributes(kind{computed: true}),
		PlanModifiers: []planmodifier.Object{objectplanmodifier.UseStateForUnknown()},
	}
}

// kind tells arguments from results.
type kind struct{ computed, listed bool }

func (k kind) text(required bool, description string) schema.StringAttribute {
	required = required && !k.listed
	return schema.StringAttribute{
		Required: required && !k.computed, Optional: !required && !k.computed, Computed: k.computed,
		Description: description,
	}
}

func (k kind) object(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Optional: !k.computed, Computed: k.computed, Description: description, Attributes: attributes}
}

func connectionAttributes(k kind) map[string]schema.Attribute {
	credential := k.object("How to get a credential: exactly one of these.", map[string]schema.Attribute{
		"kubeconfig": k.object("From a kubeconfig file.", map[string]schema.Attribute{
			"path":    k.text(true, "Path of the file."),
			"context": k.text(false, "Context within the file; its current one when left out."),
		}),
		"exec": k.object("From a credential plugin.", map[string]schema.Attribute{
			"command":     k.text(true, "The plugin's program."),
			"args":        schema.ListAttribute{Optional: !k.computed, Computed: k.computed, ElementType: types.StringType, Description: "Its arguments."},
			"api_version": k.text(false, "Version of the plugin's protocol; client.authentication.k8s.io/v1 when left out."),
		}),
		"google": k.object("From Google.", map[string]schema.Attribute{
			"credentials_file":            k.text(false, "Path of a credentials file; the application default credentials when left out."),
			"impersonate_service_account": k.text(false, "E-mail address of a service account to act as."),
		}),
		"ssh": k.object("Over SSH, on the control plane.", sshAttributes(k)),
		"certificate": k.object("By a client certificate.", map[string]schema.Attribute{
			"certificate_file": k.text(true, "Path of the certificate, in PEM."),
			"key_file":         k.text(true, "Path of its private key, in PEM."),
		}),
		"token_file": k.object("By a bearer token in a file, which is read again when it changes.", map[string]schema.Attribute{
			"path": k.text(true, "Path of the file."),
		}),
		"in_cluster": k.object("The service account of the pod that this runs in: {}.", map[string]schema.Attribute{}),
	})
	credential.Required, credential.Optional = !k.computed, false
	return map[string]schema.Attribute{
		"id":         k.text(false, "UID of the namespace kube-system: which cluster it is."),
		"endpoint":   k.text(false, `URL of the API server, such as "https://10.0.0.1:6443".`),
		"ca":         k.text(false, "Certificate authority of the API server, in PEM."),
		"credential": credential,
	}
}

func sshAttributes(k kind) map[string]schema.Attribute {
	attributes := hopAttributes(k)
	attributes["hops"] = schema.ListNestedAttribute{
		Optional: !k.computed, Computed: k.computed, Description: "The machines on the way there, nearest first.",
		NestedObject: schema.NestedAttributeObject{Attributes: hopAttributes(k)},
	}
	return attributes
}

func hopAttributes(k kind) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"address":    k.text(true, "Host name or IP address."),
		"port":       schema.Int64Attribute{Optional: !k.computed, Computed: k.computed, Description: "Port of the SSH server; 22 when left out."},
		"user":       k.text(false, "User to log in as; the one of the credential when left out."),
		"host_key":   k.text(true, `Public key of the machine, such as "ssh-ed25519 AAAA…".`),
		"credential": k.text(false, "Name of one of the credentials in the provider's block ssh; the block itself when left out."),
	}
}

// ReplaceIfOtherCluster replaces a resource whose connection leads to another
// cluster than before: the ids are known and differ, or it moves between a
// cluster and none. That something is unknown is never a reason.
func ReplaceIfOtherCluster() planmodifier.Object {
	const description = "A connection to another cluster replaces the resource."
	return objectplanmodifier.RequiresReplaceIf(
		func(_ context.Context, req planmodifier.ObjectRequest, resp *objectplanmodifier.RequiresReplaceIfFuncResponse) {
			resp.RequiresReplace = otherCluster(req.StateValue, req.PlanValue)
		}, description, description)
}

func otherCluster(before, after types.Object) bool {
	switch {
	case before.IsUnknown() || after.IsUnknown():
		return false
	case before.IsNull() || after.IsNull():
		return before.IsNull() != after.IsNull()
	}
	was, ok1 := before.Attributes()["id"].(types.String)
	is, ok2 := after.Attributes()["id"].(types.String)
	known := ok1 && ok2 && was.ValueString() != "" && is.ValueString() != ""
	return known && !was.Equal(is)
}
