// Gen writes ../onnx.pb.go from ../onnx.proto, without protoc. It is a module of its own: what it needs is no
// dependency of Sotto.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const schema = "onnx.proto"

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate() error {
	c := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{".."}},
		SourceInfoMode: protocompile.SourceInfoStandard}
	files, err := c.Compile(context.Background(), schema)
	if err != nil {
		return err
	}
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{schema},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(files[0])},
	})
	if err != nil {
		return err
	}
	text, err := internal_gengo.GenerateFile(plugin, plugin.FilesByPath[schema]).Content()
	if err != nil {
		return err
	}
	return os.WriteFile("../onnx.pb.go", text, 0o644)
}
