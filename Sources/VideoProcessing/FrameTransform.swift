package import MediaCore

/// The steps applied to a picture besides its conversion: scale to a size, then crop, then turn, then mirror.
package struct FrameTransform: Hashable, Sendable {
    /// The requested size, before cropping and turning; `nil` keeps the captured one.
    ///
    /// The picture is cropped to its aspect ratio around the middle and scaled down to it; a smaller picture is only
    /// cropped. Sides are rounded down to even ones and limited to what can be coded.
    package var size: Dimensions?
    /// Whether the whole picture is scaled down to fit into `size`, instead of being cropped to its aspect ratio.
    package var isFitted: Bool
    /// The size of the part to keep, from the middle of the scaled picture; `nil` keeps all.
    ///
    /// Sides are rounded down to even ones and limited to the picture's.
    package var crop: Dimensions?
    /// The turn of the picture.
    package var rotation: VideoRotation
    /// Whether left and right are swapped, after turning.
    package var isMirrored: Bool

    /// Creates a transform with the given steps; without any, the picture stays unchanged.
    package init(
        size: Dimensions? = nil,
        isFitted: Bool = false,
        crop: Dimensions? = nil,
        rotation: VideoRotation = .none,
        isMirrored: Bool = false
    ) {
        self.size = size
        self.isFitted = isFitted
        self.crop = crop
        self.rotation = rotation
        self.isMirrored = isMirrored
    }

    /// The size of a picture of `dimensions` after the transform.
    package func outputDimensions(for dimensions: Dimensions) -> Dimensions {
        let steps = steps(for: dimensions)
        return rotation.swapsDimensions ? steps.scaled.transposed : steps.scaled
    }

    /// The part to keep of a picture of `dimensions`, and its size after scaling, before turning.
    func steps(for dimensions: Dimensions) -> (kept: PictureRegion, scaled: Dimensions) {
        guard let size, size != dimensions else {
            let kept = PictureRegion(centred: crop, in: dimensions)
            return (kept, kept.dimensions)
        }
        let largest = size.evenAndCodable
        let target = isFitted ? dimensions.scaledDown(toFit: largest).evenAndCodable : largest
        let whole = PictureRegion(ofShape: target, in: dimensions)
        let fitted = whole.dimensions.limited(to: target)
        guard let crop else { return (whole, fitted) }
        // Crop the scaled picture and find the same part in the captured one, so that it is read once.
        let scaled = PictureRegion(centred: crop, in: fitted).dimensions
        let part = Dimensions(
            width: scaled.width * whole.dimensions.width / fitted.width,
            height: scaled.height * whole.dimensions.height / fitted.height
        )
        return (PictureRegion(centred: part, in: dimensions), scaled)
    }
}

/// A part of a picture that begins at an even row and column, so that it has whole bytes of chroma.
struct PictureRegion: Hashable, Sendable {
    var column: Int
    var row: Int
    var dimensions: Dimensions

    /// Creates the part of size `crop` in the middle of a picture; all of it if `crop` is `nil`.
    init(centred crop: Dimensions?, in dimensions: Dimensions) {
        guard let crop else {
            (column, row, self.dimensions) = (0, 0, dimensions)
            return
        }
        let size = crop.limited(to: dimensions)
        // A picture one pixel wide or high cannot be cropped to an even size.
        self.dimensions = Dimensions(
            width: dimensions.width < 2 ? 1 : size.evenAtLeast2.width,
            height: dimensions.height < 2 ? 1 : size.evenAtLeast2.height
        )
        column = (dimensions.width - self.dimensions.width) / 2 & ~1
        row = (dimensions.height - self.dimensions.height) / 2 & ~1
    }

    /// Creates the largest part in the middle of a picture with the aspect ratio of `shape`.
    init(ofShape shape: Dimensions, in dimensions: Dimensions) {
        let isTooWide = dimensions.width * shape.height > shape.width * dimensions.height
        self.init(
            centred: isTooWide
                ? Dimensions(width: dimensions.height * shape.width / shape.height, height: dimensions.height)
                : Dimensions(width: dimensions.width, height: dimensions.width * shape.height / shape.width),
            in: dimensions
        )
    }
}

extension Dimensions {
    /// This size with both sides rounded down to even ones, but at least 2.
    var evenAtLeast2: Dimensions { Dimensions(width: max(2, width & ~1), height: max(2, height & ~1)) }

    /// This size with even sides, limited to what can be coded.
    var evenAndCodable: Dimensions { limited(to: .largestCodable).evenAtLeast2 }

    /// This size with each side limited to that of `limit`.
    func limited(to limit: Dimensions) -> Dimensions {
        Dimensions(width: min(width, limit.width), height: min(height, limit.height))
    }
}
