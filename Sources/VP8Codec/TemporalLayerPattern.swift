/// Decides of each frame which temporal layer it belongs to and what it refers to.
///
/// With three layers, and in libvpx's words, this is libwebrtc's pattern of eight frames (`default_temporal_layers.cc`):
///
///     layer 2      1      3         5      7      refers to LAST and, but for frame 1, to GOLDEN; updates nothing
///     layer 1         2                 6         refers to LAST and, in frame 6, to GOLDEN; updates GOLDEN
///     layer 0   0            4                    refers to LAST; updates LAST
///
/// LAST is thus always the latest frame of layer 0, and GOLDEN the latest of layer 1.
///
/// Rate control may leave out any frame. One of a higher layer then leaves its place empty. So that every frame which
/// calls itself a sync is one, none refers to a GOLDEN from before frame 0: if frame 2 was left out, frames 3 and 5 refer
/// to LAST alone, and frame 6 takes over the part of frame 2. One of layer 0 leaves its place to the frame that comes
/// next, where libwebrtc goes on to the higher layers: whatever comes out refers to LAST, which must not grow old. On a
/// picture too busy for its rate (1280x720 at 250 kbit/s) this took the longest time without layer 0 from 64 frames to
/// 15, and spaced the frames evenly, at 10 % more bits; at 500 kbit/s from 24 to 10, at no more.
package struct TemporalLayerPattern: Hashable, Sendable {
    /// What a frame is to the others.
    package struct Role: Hashable, Sendable {
        /// The frame's temporal layer.
        package let temporalLayer: UInt8
        /// Whether the frame may refer to the latest frame of the middle layer, besides the latest of layer 0.
        package let refersToMiddleLayer: Bool
        /// Whether later frames may refer to this one.
        package let isReference: Bool

        /// Whether the frame is above layer 0 and refers to the latest frame of layer 0 alone.
        ///
        /// A receiver that has had nothing but layer 0 so far may take all layers up to this frame's from here on.
        package var isLayerSync: Bool { temporalLayer > 0 && !refersToMiddleLayer }
    }

    /// What became of a frame.
    package enum Outcome: Hashable, Sendable {
        /// It came out as a keyframe; the pattern begins anew with it.
        case keyframe
        /// It came out in the role it was given.
        case encoded
        /// The encoder left it out, or failed.
        case dropped
    }

    /// The numbers of layers that there are patterns for.
    package static let supportedLayerCounts = 1...3

    /// The number of temporal layers.
    package let layerCount: Int
    private var position = 0
    /// Whether a frame of the middle layer came out since the pattern's beginning, that is, since frame 0.
    private var middleLayerIsFresh = false

    /// The beginning of the pattern of `layerCount` layers, one of `supportedLayerCounts`.
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

    /// Goes on to the frame after the next one, of which `outcome` tells.
    package mutating func advance(_ outcome: Outcome) {
        let role = nextRole
        switch outcome {
        case .keyframe:
            position = 0
            middleLayerIsFresh = false
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
