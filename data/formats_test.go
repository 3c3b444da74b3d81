package data_test

import (
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/source"
)

func init() { data.TestFormats, data.Skeleton = source.Formats(), source.Skeleton }
