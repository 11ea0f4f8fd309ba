/// Decides for each frame its temporal layer and the frames that it refers to.
///
/// With three layers this is libwebrtc's pattern of eight frames (`default_temporal_layers.cc`), here in libvpx's
/// terms:
///
/// ```
///     layer 2      1      3         5      7      refers to LAST and, except frame 1, to GOLDEN; updates nothing
///     layer 1         2                 6         refers to LAST and, in frame 6, to GOLDEN; updates GOLDEN
///     layer 0   0            4                    refers to LAST; updates LAST
/// ```
///
/// LAST is thus always the latest frame of layer 0, and GOLDEN the latest of layer 1.
///
/// Rate control may leave out any frame. If it leaves out a frame of a higher layer, that place in the pattern stays
/// empty. A frame that is marked as a sync must really be one, so no frame refers to a GOLDEN from before frame 0. If
/// frame 2 was left out, frames 3 and 5 therefore refer to LAST alone, and frame 6 takes the role of frame 2.
///
/// If rate control leaves out a frame of layer 0, the next frame takes its place; libwebrtc goes on to the higher
/// layers instead. The reason is that every frame refers to LAST, which must not grow old. On a picture too busy for
/// its rate (1280x720 at 250 kbit/s) this shortened the longest time without layer 0 from 64 frames to 15 and spaced
/// the frames evenly, at 10 % more bits. At 500 kbit/s it shortened that time from 24 frames to 10, at no more bits.
package struct TemporalLayerPattern: Hashable, Sendable {
    /// A frame's relation to the others.
    package struct Role: Hashable, Sendable {
        /// The frame's temporal layer.
        package let temporalLayer: UInt8
        /// Whether the frame may refer to the latest frame of the middle layer, besides the latest of layer 0.
        package let refersToMiddleLayer: Bool
        /// Whether later frames may refer to this one.
        package let isReference: Bool

        /// Whether the frame is above layer 0 and refers only to the latest frame of layer 0.
        ///
        /// A receiver that has had only layer 0 so far may take all layers up to this frame's from here on.
        package var isLayerSync: Bool { temporalLayer > 0 && !refersToMiddleLayer }
    }

    /// The result of encoding a frame.
    package enum Outcome: Hashable, Sendable {
        /// It became a keyframe; the pattern starts again with it.
        case keyframe
        /// It was encoded in its role.
        case encoded
        /// The encoder left it out or failed.
        case dropped
    }

    /// The supported numbers of layers.
    package static let supportedLayerCounts = 1...3

    /// The number of temporal layers.
    package let layerCount: Int
    private var position = 0
    /// Whether a frame of the middle layer was encoded since the pattern's start, that is, since frame 0.
    private var middleLayerIsFresh = false

    /// Creates the start of the pattern for `layerCount` layers, one of `supportedLayerCounts`.
    package init(layerCount: Int) {
        precondition(Self.supportedLayerCounts.contains(layerCount), "\(layerCount) temporal layers")
        self.layerCount = layerCount
    }

    /// The role of the next frame, unless it becomes a keyframe.
    package var nextRole: Role {
        let layer = temporalLayer(at: position)
        return Role(
            temporalLayer: UInt8(layer),
            refersToMiddleLayer: layer > 0 && middleLayerIsFresh,
            isReference: layer == 0 || layer < layerCount - 1
        )
    }

    /// Makes the next frame one of layer 0, with which the pattern starts again.
    package mutating func restart() {
        position = 0
        middleLayerIsFresh = false
    }

    /// Notes that the next frame was encoded in its role, but will not be sent; it can be encoded again.
    package mutating func takeBack() {
        // GOLDEN holds that frame now.
        if nextRole.temporalLayer > 0, nextRole.isReference { middleLayerIsFresh = false }
    }

    /// Moves past the next frame, whose result is `outcome`.
    package mutating func advance(_ outcome: Outcome) {
        let role = nextRole
        switch outcome {
        case .keyframe: restart()
        case .encoded:
            if role.temporalLayer > 0, role.isReference { middleLayerIsFresh = true }
        case .dropped:
            if role.temporalLayer == 0 { return }
        }
        position = (position + 1) % length
        if position == 0 { middleLayerIsFresh = false }
    }

    private var length: Int {
        switch layerCount {
        case 3: 8
        case 2: 2
        default: 1
        }
    }

    private func temporalLayer(at position: Int) -> Int {
        // The layers of four frames with three layers: 0 2 1 2.
        if position % 2 == 1 { return layerCount - 1 }
        return position % 4 == 2 ? 1 : 0
    }
}
