package import MediaCore

/// Decides which frames of a track can still be decoded after some frames were left out.
///
/// It is used wherever frames are left out: by the relay for a slow subscriber, before a decoder, and before a file. It
/// must see the frames in order.
package struct TemporalLayerGate: Hashable, Sendable {
    /// The highest temporal layer up to which all frames have passed; -1 until the first keyframe.
    private var intactLayer = -1

    /// Creates a gate that waits for a keyframe.
    package init() {}

    /// Whether nothing passes until a keyframe comes.
    package var isWaitingForKeyframe: Bool { intactLayer < 0 }

    /// Closes the gate until a keyframe comes.
    package mutating func waitForKeyframe() {
        intactLayer = -1
    }

    /// Whether a frame can be decoded after those that passed before; if so, it counts as passed.
    ///
    /// A layer that was left out passes again from a frame that is marked as its sync, once the layers below it pass. A
    /// discardable frame needs only the layers below it. `limit` is the highest temporal layer wanted now.
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

    /// Does the same for a frame's description.
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
