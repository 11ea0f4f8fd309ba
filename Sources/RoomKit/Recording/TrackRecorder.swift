import Glibc
public import MediaCore
package import MediaFiles
import Threading

/// Why a recording ended early.
public struct RecordingError: CodedError, Hashable, Sendable, CustomStringConvertible {
    /// The error of the file or directory.
    package let cause: MediaFileError

    init(_ cause: MediaFileError) {
        self.cause = cause
    }

    /// What happened and what to do about it.
    public var description: String { "\(cause)" }
    /// The name of the kind of failure, such as `storageFull` or `notPermitted`.
    public var codeName: String { cause.codeName }
    /// Whether the disk is full.
    public var isStorageFull: Bool { cause.code == .storageFull }
    /// Whether the reader of a pipe has gone.
    public var isReaderGone: Bool { cause.code == .readerGone }
    /// Whether a file with that name exists already.
    var isFileThere: Bool { cause.code == .fileExists }

    init(_ shortage: ThreadShortage, recordingTo directory: String) {
        cause = MediaFileError(.outOfResources, .create, "a recording in \(directory)", "\(shortage)")
    }
}

/// The files and counts of a recorder.
public struct RecordingStatistics: Hashable, Sendable {
    /// The path of the file, once it has been begun; for `png` that of the first picture.
    public var files: [String] = []
    /// The path of the file that was written to last; for `png` that of the last picture.
    public var lastFile: String?
    /// How many files were written: for `png` one for each picture.
    public var fileCount = 0
    /// Frames that were written to the files.
    public var framesWritten = 0
    /// Frames that were left out, because the disk was too slow or full.
    public var framesDropped = 0
    /// The error that ended the recording, if any.
    public var error: RecordingError?

    /// Creates statistics of a recorder that has written nothing.
    public init() {}
}

/// Records a remote track to files, on a thread of its own.
///
/// With a slow disk the recording loses frames, but nothing else is affected.
///
/// The file's name is `<publisher>-<track name>-<recorder's id>`. A file that exists is never overwritten: a number is
/// added. There is one file whatever sizes the pictures take. Compressed formats contain exactly the received frames,
/// each keyframe with its size. Raw pictures are scaled to the size as published. Beside the video is a log,
/// `….frames.jsonl`, with a line for each frame.
///
/// The recording ends with `stop`, when the track is withdrawn, or with the session. Then its files are complete, and
/// its thread has ended.
public final class TrackRecorder: Sendable {
    /// The format of the files.
    public enum Format: String, CaseIterable, Sendable {
        /// WebM with the frames as received.
        case webm
        /// IVF with the frames as received.
        case ivf
        /// Raw pictures in one file.
        case y4m
        /// One PNG file for each picture.
        case png
    }

    private let track: RemoteVideoTrack
    private let tap: RecorderTap
    private let statisticsBox = Monitor(RecordingStatistics())
    private let thread = Monitor<WorkerThread?>(nil)
    private let threadEnded = Promise<Void>()

    /// Starts to record `track` into `directory`, which is created if it does not exist.
    ///
    /// - Parameters:
    ///   - track: The track.
    ///   - directory: The directory for the files.
    ///   - recorderID: Distinguishes the files of several recorders of one track; usually our own participant's `sid`.
    ///   - format: The format of the files.
    /// - Throws: `RecordingError` if the directory cannot be created or written to, or there is no thread. Later errors
    ///   are in `statistics`.
    public init(track: RemoteVideoTrack, directory: String, recorderID: String, format: Format) throws(RecordingError) {
        self.track = track
        try Self.prepareDirectory(directory)
        let name = Self.fileName(of: track, recorderID)
        let (dimensions, frameRate) = (track.publishedDimensions, track.frameRate)
        tap = RecorderTap(format: format) { [weak track] in track?.requestKeyframe(for: .recorder) }
        let (tap, statistics, threadEnded) = (tap, statisticsBox, threadEnded)
        let codec = track.trackCodec ?? .forPublishing
        let start = MonotonicClock.now
        do throws(ThreadShortage) {
            try thread.withLock { thread throws(ThreadShortage) in
                thread = try WorkerThread(name: "recorder") {
                    let files = RecordingFiles(
                        directory: directory,
                        name: name,
                        format: format,
                        codec: codec,
                        announced: dimensions,
                        frameRate: frameRate,
                        start: start
                    )
                    Self.record(files, from: tap, into: statistics)
                    threadEnded.fulfill(())
                }
            }
        } catch {
            throw RecordingError(error, recordingTo: directory)
        }
        track.addSink(tap)
    }

    /// Ends the recording in the background, if `stop` was not called; its file is complete a little later.
    deinit {
        track.removeSink(tap)
        tap.close()
    }

    /// The files and counts so far.
    public var statistics: RecordingStatistics {
        var statistics = statisticsBox.withLock { $0 }
        statistics.framesDropped += tap.dropped
        return statistics
    }

    /// Writes the waiting frames, completes the file and ends the recording; blocks until this is done.
    ///
    /// Any thread may call it. A second call does nothing.
    public func stop() {
        track.removeSink(tap)
        tap.close()
        thread.withLock { $0 }?.join()
    }

    /// Waits until the recording has ended, so that its files are complete and `statistics` is final.
    ///
    /// A cancelled task waits as well.
    public func ended() async {
        _ = await threadEnded.value()
        thread.withLock { $0 }?.join()
    }

    private static func record(
        _ files: consuming RecordingFiles,
        from tap: RecorderTap,
        into statistics: Monitor<RecordingStatistics>
    ) {
        while let frame = tap.take() {
            do throws(RecordingError) {
                guard statistics.withLock({ $0.error }) == nil else {
                    statistics.withLock { $0.framesDropped += 1 }
                    continue
                }
                let begun = try files.write(frame)
                statistics.withLock { statistics in
                    statistics.framesWritten += 1
                    guard let begun else { return }
                    if begun.isFirst { statistics.files.append(begun.path) }
                    statistics.lastFile = begun.path
                    statistics.fileCount += 1
                }
            } catch {
                statistics.withLock { statistics in
                    statistics.framesDropped += 1
                    statistics.error = error
                }
                files.abandon()
            }
        }
        do throws(RecordingError) {
            try files.finish()
        } catch {
            statistics.withLock { $0.error = $0.error ?? error }
        }
    }

    /// The name of all files of a recording, without number and extension.
    ///
    /// Linux allows 255 bytes (`NAME_MAX`). Numbers and extension take up to 17 of them. A PNG file has a temporary
    /// name until it is complete, which takes another 13.
    private static func fileName(of track: RemoteVideoTrack, _ recorderID: String) -> String {
        let parts = [(track.publisherIdentity, 90), (track.name, 90), (recorderID, 32)]
        return parts.map { fileName($0.0, limit: $0.1) }.joined(separator: "-")
    }

    /// Creates the directory `path` and missing directories above it, and checks that files can be written there.
    ///
    /// - Throws: `RecordingError` if it cannot be created or written to.
    package static func prepareDirectory(_ path: String) throws(RecordingError) {
        func failure(_ status: Int32) -> RecordingError {
            RecordingError(MediaFileError(.makeDirectory, path, status: status))
        }
        guard !path.isEmpty else { throw failure(ENOENT) }
        var partial = path.hasPrefix("/") ? "/" : ""
        for component in path.split(separator: "/") {
            partial += (partial.isEmpty || partial.hasSuffix("/") ? "" : "/") + component
            guard unsafe mkdir(partial, 0o755) != 0 else { continue }
            guard errno == EEXIST else { throw failure(errno) }
            var status = stat()
            guard unsafe stat(partial, &status) != 0, errno == ENOENT else { continue }
            throw RecordingError(MediaFileError(danglingLink: partial))
        }
        // Report a file of that name, or a missing write permission, now instead of at the first frame.
        guard unsafe access("\(path)/.", W_OK | X_OK) == 0 else { throw failure(errno) }
    }

    /// What some file systems refuse in names: FAT, exFAT and NTFS.
    private static let refusedScalars = Set("/\\:*?\"<>|".unicodeScalars)

    /// What terminals and file managers obey instead of showing it: control characters, line separators, and invisible
    /// ones such as those that turn the direction of the text.
    private static let invisibleCategories: Set<Unicode.GeneralCategory> = [
        .control, .format, .lineSeparator, .paragraphSeparator,
    ]

    /// Makes a name usable in a file's name: at most `limit` bytes, no slash, no leading dot, no control characters or
    /// invisible ones, and nothing that the FAT of a memory stick, or a Windows share, refuses.
    ///
    /// It looks at Unicode scalars and not at characters: a slash with an accent is one character, but still a slash to
    /// the system.
    package static func fileName(_ name: String, limit: Int) -> String {
        var safe = ""
        for scalar in name.unicodeScalars {
            let isSafe =
                !Self.refusedScalars.contains(scalar)
                && !Self.invisibleCategories.contains(scalar.properties.generalCategory)
            safe.unicodeScalars.append(isSafe ? scalar : "_")
            if safe.utf8.count > limit {
                safe.unicodeScalars.removeLast()
                break
            }
        }
        // Compared as characters, a point with a combining mark would be no point.
        guard safe.utf8.first == UInt8(ascii: ".") else { return safe }
        return "_" + String(safe.unicodeScalars.dropFirst())
    }
}

/// The sink that takes a track's frames for a recorder, on the decoder's thread.
final class RecorderTap: ReceivedFrameSink, Sendable {
    /// The queue for raw pictures.
    ///
    /// Only a few pictures may wait here, because each is large. Compressed frames may wait in `frames`, three seconds
    /// of one layer at 60 fps, because a file is not late: no frame is left out for having waited. If the disk takes
    /// nothing for longer, those are kept, and the file goes on at the next keyframe for which there is room.
    private let pictures: BoundedQueue<ReceivedFrame>?
    private let frames: FrameQueue
    private let requestKeyframe: @Sendable () -> Void
    private let droppedPictures = Monitor(0)

    private static let depths = FrameQueue.Depths(
        dropTopLayer: 90,
        dropMiddleLayer: 135,
        skip: 180,
        skipSize: .mebibytes(8),
        longestWait: nil,
        catchUp: 240,
        catchUpSize: .mebibytes(8),
        overflow: .newest
    )

    init(format: TrackRecorder.Format, requestKeyframe: @escaping @Sendable () -> Void) {
        pictures = format == .y4m || format == .png ? BoundedQueue(depth: 8) : nil
        frames = FrameQueue(Self.depths)
        self.requestKeyframe = requestKeyframe
    }

    var wantsPictures: Bool { pictures != nil }

    /// What the disk was too slow for.
    ///
    /// Compressed frames before the first keyframe, or after the end, are no part of the recording and do not count.
    var dropped: Int { frames.dropped[.late] + droppedPictures.withLock { $0 } }

    func begin(with earlier: [ReceivedFrame]) {
        // Earlier frames have no pictures, because nobody wanted them.
        if pictures == nil { frames.begin(with: earlier) }
    }

    func receive(_ frame: ReceivedFrame) {
        if let pictures {
            if frame.picture != nil && !pictures.put(frame) { droppedPictures.withLock { $0 += 1 } }
        } else if case .needsKeyframe = frames.put(frame) {
            requestKeyframe()
        }
    }

    func end() {
        close()
    }

    func take() -> ReceivedFrame? {
        if let pictures { pictures.take() } else { frames.take() }
    }

    func close() {
        pictures?.close()
        frames.close()
    }
}
