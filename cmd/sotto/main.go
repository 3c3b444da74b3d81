// Command sotto trains models on sensitive records and states what they can tell about any one
// of them. Package cli is what it does.
package main

import "github.com/sottodp/sotto/cli"

func main() { cli.Main() }
