package import MediaCore

/// Decides which frames of a track can still be decoded by somebody who has left some out.
///
/// Used wherever frames are left out: by the relay for a slow subscriber, before a decoder, and before a file. Frames
/// must be shown to it in order.
package struct TemporalLayerGate: Hashable, Sendable {
    /// The temporal layer up to which everything has passed; -1 until the first keyframe.
    private var intactLayer = -1

    /// A gate that waits for a keyframe.
    package init() {}

    /// Whether nothing passes until a keyframe comes.
    package var isWaitingForKeyframe: Bool { intactLayer < 0 }

    /// Gives up what was passed so far: nothing passes until a keyframe comes.
    package mutating func waitForKeyframe() {
        intactLayer = -1
    }

    /// Whether a frame can be decoded after those that passed before; if so, it counts as passed.
    ///
    /// A layer that was left out comes in again at a frame marked as its sync, once the layers below it are in; a
    /// discardable frame needs no more than the layers below it. `limit` is the highest temporal layer wanted now.
    package mutating func passes(
        isKeyframe: Bool,
        temporalLayer: UInt8,
        isLayerSync: Bool,
        isDiscardable: Bool,
        limit: Int = .max
    ) -> Bool {
        if isKeyframe {
            intactLayer = .max
            return true
        }
        let layer = Int(temporalLayer)
        guard layer <= limit else {
            if !isDiscardable { intactLayer = min(intactLayer, layer - 1) }
            return false
        }
        if layer <= intactLayer { return true }
        guard layer == intactLayer + 1, layer > 0 else { return false }
        if isDiscardable { return true }
        guard isLayerSync else { return false }
        intactLayer = layer
        return true
    }

    /// As above, for a frame's description.
    package mutating func passes(_ frame: EncodedFrameInfo, limit: Int = .max) -> Bool {
        passes(
            isKeyframe: frame.isKeyframe,
            temporalLayer: frame.temporalLayer,
            isLayerSync: frame.isLayerSync,
            isDiscardable: frame.isDiscardable,
            limit: limit
        )
    }
}
