import Capture
import MediaCore
import Threading

/// Reads the pictures of a source from a file.
final class ClipPainter: FramePainter {
    let dimensions: Dimensions
    let frameRate: FrameRate

    private let reader: any VideoFrameReader
    private let isLooped: Bool
    private let pool = VideoBufferPool()
    /// The position in the clip, in frames with a fraction, and the number of frames that have been read.
    private var position = 0.0
    private var framesRead = 0
    private var hasFrames = false

    init(reader: any VideoFrameReader, isLooped: Bool) throws(SyntheticSourceError) {
        self.reader = try reader.withUsableSize()
        self.isLooped = isLooped
        dimensions = reader.dimensions
        frameRate = reader.frameRate
    }

    func paint(_ assignment: FrameAssignment) throws -> VideoBuffer? {
        let buffer = pool.take(dimensions)
        // At a lower rate than the clip's, frames in between are left out, so that it still plays at its own speed.
        let wanted = Int(position) - framesRead + 1
        for _ in 0..<max(1, wanted) {
            guard try readFrame(into: buffer) else { return nil }
        }
        framesRead += max(1, wanted)
        position += max(1, frameRate.framesPerSecond / assignment.frameRate.framesPerSecond)
        return buffer
    }

    /// Reads the next frame; a looped clip continues from its beginning.
    private func readFrame(into buffer: VideoBuffer) throws -> Bool {
        if try reader.readFrame(into: buffer) {
            hasFrames = true
            return true
        }
        guard hasFrames else { throw SyntheticSourceError(code: .emptyClip, dimensions: dimensions) }
        guard isLooped else { return false }
        try reader.rewind()
        guard try reader.readFrame(into: buffer) else {
            throw SyntheticSourceError(code: .emptyClip, dimensions: dimensions)
        }
        return true
    }
}
