package job

import (
	"os"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
)

func TestMain(m *testing.M) { os.Exit(needs.Home(m)) }
