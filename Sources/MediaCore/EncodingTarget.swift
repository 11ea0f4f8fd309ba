/// The size, rates and limits with which an encoder is to encode the next frame.
package struct EncodingTarget: Hashable, Sendable {
    /// The size of the encoded picture; neither side is longer than the encoder was opened with.
    package var dimensions: Dimensions
    /// The average bitrate of all temporal layers together.
    package var bitrate: Bitrate
    /// The approximate rate of the frames that will be encoded.
    package var frameRate: FrameRate
    /// The number of temporal layers: 1, 2 or 3.
    package var temporalLayerCount: Int
    /// The size that this frame alone should not exceed, so that it arrives in time; `nil` for no limit.
    package var largestFrame: DataSize?

    /// Creates a target with the given values.
    package init(
        dimensions: Dimensions,
        bitrate: Bitrate,
        frameRate: FrameRate,
        temporalLayerCount: Int = 1,
        largestFrame: DataSize? = nil
    ) {
        self.dimensions = dimensions
        self.bitrate = bitrate
        self.frameRate = frameRate
        self.temporalLayerCount = temporalLayerCount
        self.largestFrame = largestFrame
    }
}
