package model

import (
	"encoding/base64"
	"fmt"
	"slices"

	"swarm"
	"swarm/internal/providerkind"
)

// Limits of the images that tools return. Each request of a turn sends all of them again.
const (
	maxImage  = 3 << 20 // bytes of one: the vendors take 5 MB of base64
	maxImages = 8       // of one turn
)

// imageTypes are the types that all vendors take.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// seesImages says whether the model of a turn is shown the images that tools return.
func (t *turn) seesImages() bool {
	if t.conversation.leftOut[optImages] {
		return false
	}
	if t.spec.Images != nil {
		return *t.spec.Images
	}
	return providerkind.SeesImages(t.conversation.model)
}

// takeImage takes an image for a result, and says what the text of the result tells of it.
func (t *turn) takeImage(x *swarm.ToolResult, image swarm.ToolImage) string {
	switch {
	case len(image.Data) > maxImage:
		return fmt.Sprintf(", which is not shown: it has more than %d MB", maxImage>>20)
	case !slices.Contains(imageTypes, image.MIMEType):
		return ", which is not shown: models do not take this type"
	case t.images == maxImages:
		return fmt.Sprintf(", which is not shown: a turn has at most %d images", maxImages)
	}
	t.images++
	x.Images = append(x.Images, image)
	return ", shown to the model"
}

// sentImages returns the images of a result that go to the model.
func (c *conversation) sentImages(x *swarm.ToolResult) []swarm.ToolImage {
	if c.leftOut[optImages] {
		return nil
	}
	return x.Images
}

// hasImages says whether a request has images.
func (c *conversation) hasImages() bool {
	return slices.ContainsFunc(c.messages, func(m swarm.ChatMessage) bool {
		return slices.ContainsFunc(m.Results, func(x swarm.ToolResult) bool { return len(c.sentImages(&x)) > 0 })
	})
}

// dataURL returns an image as the data URL that OpenAI's APIs take.
func dataURL(image swarm.ToolImage) string {
	return "data:" + image.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
}
