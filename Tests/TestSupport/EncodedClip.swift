package import MediaCore
import MediaFiles

/// A clip of VP8 frames in a file, made by ffmpeg.
package struct EncodedClip: Sendable {
    /// The file.
    package let path: String
    /// The compressed frames.
    package let frames: [[UInt8]]
    /// Which of them are keyframes.
    package let keyframes: [Int]

    /// Encodes a moving picture into the file at `path`, whose ending gives the format.
    ///
    /// - Parameters:
    ///   - path: The new file.
    ///   - frames: How many frames it has, 30 a second.
    ///   - interval: Every how many frames there is a keyframe.
    ///   - size: The size of the pictures.
    ///   - options: More options of ffmpeg's encoder.
    /// - Throws: An error if there is no ffmpeg, or it fails.
    package init(
        _ path: String,
        frames: Int,
        keyframeInterval interval: Int,
        size: Dimensions = testSize,
        options: [String] = ["-auto-alt-ref", "0"]
    ) async throws {
        let source = ["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=\(size):rate=30", "-frames:v", "\(frames)"]
        let encoder = ["-c:v", "libvpx", "-g", "\(interval)", "-keyint_min", "\(interval)", "-deadline", "realtime"]
        let ffmpeg = try Program("ffmpeg", source + encoder + options + [path])
        let ending = try await ffmpeg.end()
        guard ending == .exit(0) else { throw TestFailure("ffmpeg: \(ending) \(ffmpeg.errors)") }
        try self.init(reading: path)
    }

    /// Reads the file at `path`.
    package init(reading path: String) throws {
        self.path = path
        let reader = try EncodedVideoFormat.openReader(path: path)
        var (frames, keyframes): ([[UInt8]], [Int]) = ([], [])
        while let frame = try reader.nextFrame() {
            if frame.isKeyframe { keyframes.append(frames.count) }
            frames.append(reader.withFrameBytes { bytes in bytes.withUnsafeBytes { Array($0) } })
        }
        (self.frames, self.keyframes) = (frames, keyframes)
    }
}
