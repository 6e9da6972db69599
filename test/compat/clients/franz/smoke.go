package main

import (
	"context"
	"errors"
)

func smoke(context.Context, string) error { return errors.New("later") }
