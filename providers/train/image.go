package train

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/train/image"
)

// imageResource is train_image: a container image with the trainer, pushed to a
// registry or written as a tarball.
type imageResource struct{ settings *settings }

// imageModel is train_image's value.
type imageModel struct {
	ID           types.String   `tfsdk:"id"`
	Base         types.String   `tfsdk:"base"`
	Platform     types.String   `tfsdk:"platform"`
	Trainer      types.String   `tfsdk:"trainer"`
	GPU          types.Bool     `tfsdk:"gpu"`
	GPUTrainer   types.String   `tfsdk:"gpu_trainer"`
	GPUFiles     types.String   `tfsdk:"gpu_files"`
	StokeGPU     types.String   `tfsdk:"stoke_gpu"`
	Files        types.Map      `tfsdk:"files"`
	Wheels       types.String   `tfsdk:"wheels"`
	Python       types.String   `tfsdk:"python"`
	SitePackages types.String   `tfsdk:"site_packages"`
	Environment  types.Map      `tfsdk:"environment"`
	WorkingDir   types.String   `tfsdk:"working_dir"`
	Entrypoint   types.List     `tfsdk:"entrypoint"`
	Command      types.List     `tfsdk:"command"`
	User         types.String   `tfsdk:"user"`
	Labels       types.Map      `tfsdk:"labels"`
	Push         types.String   `tfsdk:"push"`
	Tarball      types.String   `tfsdk:"tarball"`
	Delete       types.Bool     `tfsdk:"delete_on_destroy"`
	BaseDigest   types.String   `tfsdk:"base_digest"`
	Digest       types.String   `tfsdk:"digest"`
	Reference    types.String   `tfsdk:"reference"`
	Archive      types.String   `tfsdk:"archive"`
	Size         types.Number   `tfsdk:"size"`
	Contents     types.Map      `tfsdk:"contents"`
	Timeouts     timeouts.Value `tfsdk:"timeouts"`
}

func (r *imageResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_image"
}

func (r *imageResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	configured(req, &r.settings)
}

func (r *imageResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := imageArguments()
	computed := func(name, text string) {
		attributes[name] = schema.StringAttribute{Computed: true, Description: text}
	}
	computed("id", "Identifies this resource; a tarball carries it.")
	computed("base_digest", "Digest of `base` when the image was built: sha256:…")
	computed("digest", "Digest of the image's manifest: sha256:…. Equal inputs, equal digest.")
	computed("reference", "Name of the image for pods: REGISTRY/REPOSITORY@sha256:… of a pushed image, else the name that loading the tarball gives it, localhost/NAME:DIGITS.")
	computed("archive", "The tarball's path, known once the file exists: a resource that loads it, such as images of metal_host, refers to this argument and is applied after it.")
	attributes["size"] = schema.NumberAttribute{Computed: true, Description: "Bytes of the image in a registry, its base included."}
	attributes["contents"] = schema.MapAttribute{Computed: true, ElementType: types.StringType,
		Description: "Files on top of the base: path in the image, or name of a wheel, and the file's SHA-256. A plan shows by it which files have changed."}
	resp.Schema = schema.Schema{
		Description: "A container image for training on a cluster, built without Docker: a base image or none, the trainer, files, and Python wheels.",
		Attributes:  attributes,
		Blocks: map[string]schema.Block{
			"timeouts": timeouts.Block(ctx, timeouts.Opts{Create: true, Update: true, Delete: true}),
		},
	}
}

func imageArguments() map[string]schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Description: description}
	}
	preset := func(value, description string) schema.StringAttribute {
		a := text(description + " Default: " + value + ".")
		a.Computed, a.Default = true, stringdefault.StaticString(value)
		return a
	}
	textMap := func(description string) schema.MapAttribute {
		return schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: description}
	}
	words := func(description string) schema.ListAttribute {
		return schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: description}
	}
	return map[string]schema.Attribute{
		"base":     text("Image to build on, by tag or by digest, such as python:3.12-slim. Default: none."),
		"platform": preset(image.DefaultPlatform, "Platform of the image: linux/amd64 or linux/arm64."),
		"trainer":  text("Path of a stoke-trainer for `platform` that needs no libraries. Default: trainer of the provider block. Its path in the image is " + image.TrainerPath + "."),
		"gpu": schema.BoolAttribute{Optional: true, Description: "Whether workers with GPUs run in the image: " +
			"stoke-trainer-gpu is then at " + image.GPUTrainerPath + ", and `base` needs glibc and libstdc++. Default: false."},
		"gpu_trainer": text("With `gpu`: path of a stoke-trainer-gpu for `platform`. Default: gpu_trainer of the provider block."),
		"stoke_gpu": text("Path of a stoke-gpu for `platform`, which reads the health of GPUs. Its path in the image is " +
			image.StokeGPUPath + "; pods of programs copy it from there. Default: with `gpu`, the one next to " +
			"stoke-trainer-gpu if it is for `platform`; else none."),
		"gpu_files": text("With `gpu`: folder of XLA's plugin, CUDA's libraries, ptxas and libdevice.10.bc, " +
			"which becomes " + image.GPUFolder + ". Default: none; the base or `wheels` have them."),
		"files":             textMap("Path in the image, and the file or folder of this machine to copy there. Files belong to root and every user can read them; of their modes only whether they can be executed counts. Links may not lead out of their folder."),
		"wheels":            text("Folder of Python wheels (*.whl), as `pip download --only-binary=:all:` fills it. They are checked against their own hashes and unpacked."),
		"python":            text("Python of the base image, such as 3.12; needed with `wheels`."),
		"site_packages":     text("Where wheels are unpacked in the image. Default: /usr/local/lib/pythonVERSION/site-packages."),
		"environment":       textMap("Environment variables, in addition to the base image's variables. Every user who can pull the image can read them: not a place for secrets."),
		"working_dir":       text("Working directory. Default: the base image's directory."),
		"entrypoint":        words("Program that is started, and its first arguments. Default: the trainer."),
		"command":           words("Further arguments. Default: none."),
		"user":              preset(image.DefaultUser, "Number of the user, UID or UID:GID. Root (0) does not pass the Pod Security level restricted."),
		"labels":            textMap("Labels, in addition to the base image's labels."),
		"push":              text("Where the image is pushed to: REGISTRY/REPOSITORY:TAG. Credentials come from Docker's configuration and its helpers, or from Google's default credentials; they are not stored."),
		"tarball":           text("Path of a file to write the image to, in its folder, which must be there. `docker load`, `podman load`, `ctr images import` and `kind load image-archive` read it."),
		"delete_on_destroy": schema.BoolAttribute{Optional: true, Description: "Delete the pushed image from the registry, with all tags of its digest, when the resource is destroyed or pushes elsewhere. Default: false, it stays."},
	}
}

// keep takes everything computed from the prior value.
func (m *imageModel) keep(prior *imageModel) {
	m.Digest, m.Size, m.Contents = prior.Digest, prior.Size, prior.Contents
}

// forget makes what follows from the contents unknown.
func (m *imageModel) forget() {
	m.BaseDigest, m.Digest, m.Reference, m.Archive = types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	m.Size, m.Contents = types.NumberUnknown(), types.MapUnknown(types.StringType)
}
