package model

import (
	"encoding/base64"
	"fmt"
	"slices"

	"swarm"
	"swarm/internal/providerkind"
)

// Limits of the images that tools return. Each request sends all of them again.
const (
	maxImage      = 3 << 20  // bytes of one: the vendors take 5 MB of base64
	maxImages     = 8        // of one turn
	maxSent       = 16 << 20 // bytes of those in one request: the vendors take 32 MB of base64 and text
	maxSentImages = 20       // the vendors take smaller ones if there are more
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
	return swarm.ImageShown
}

// trimImages removes images that are too many for one request, the oldest first. A model that takes
// no images gets none of earlier turns either, even if another model did those turns.
func (t *turn) trimImages() {
	number, size := maxSentImages, maxSent
	if !t.seesImages() {
		number = 0
	}
	for i := len(t.conversation.messages) - 1; i >= 0; i-- {
		m := &t.conversation.messages[i]
		cloned := false
		for j := len(m.Results) - 1; j >= 0; j-- {
			number -= len(m.Results[j].Images)
			for _, image := range m.Results[j].Images {
				size -= len(image.Data)
			}
			if len(m.Results[j].Images) == 0 || number >= 0 && size >= 0 {
				continue
			}
			if number, size = 0, 0; !cloned { // the history may belong to others
				m.Results, cloned = slices.Clone(m.Results), true
			}
			m.Results[j] = m.Results[j].WithoutImages()
		}
	}
}

// askedSize returns the size of a request of n bytes for the estimate of its tokens. An image
// counts by its tokens and not by its bytes.
func (c *conversation) askedSize(n int) int64 {
	size := int64(n)
	for _, m := range c.messages {
		for _, x := range m.Results {
			size += x.ImagesSize()
			for _, image := range x.Images {
				size -= int64(base64.StdEncoding.EncodedLen(len(image.Data)))
			}
		}
	}
	return size
}

// hasImages says whether a request has images.
func (c *conversation) hasImages() bool {
	return slices.ContainsFunc(c.messages, func(m swarm.ChatMessage) bool {
		return slices.ContainsFunc(m.Results, func(x swarm.ToolResult) bool { return len(x.Images) > 0 })
	})
}

// dataURL returns an image as the data URL that OpenAI's APIs take.
func dataURL(image swarm.ToolImage) string {
	return "data:" + image.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
}
